"""Send what a transaction has changed in a store to the store's changelog.

Where the topic of a table takes the place of its store's changelog, the store was filled from that
topic, nothing is logged, and the store's position is the task's offset of the topic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from state.store import Disk, StateStore
from streams.positions import Partition
from streams.runtime.clients import recovery_from_produce
from streams.runtime.clients.written import with_account
from streams.runtime.interfaces import ProducerClient
from streams.runtime.queues import NO_TIME


@dataclass(slots=True)
class LoggedStore:
    """Pairs a store with its changelog partition and its position there.

    The position is the first changelog offset that the store does not contain.
    """

    store: StateStore
    changelog: Partition
    topic_id: str
    position: int
    disk: Disk | None = None
    """The committed state of the store, for readers outside the stream thread."""
    from_source: bool = False
    """Whether `changelog` is the topic of the store's table, which others write: nothing is logged
    then."""
    committed: int = 0
    """The committed offset of the table's topic, up to which such a store is restored."""

    def log_changes(self, producer: ProducerClient, undelivered: list[str]) -> None:
        """Send each changed key of the store to its changelog.

        `changelog_position` is known when all is delivered, or `undelivered` says why it was not.
        Raises a client's error, translated to the error that selects the recovery.
        """
        try:
            self._produce(producer, undelivered)
        except Exception as error:
            recovery = recovery_from_produce(error, f"changelog {self.changelog}")
            if recovery is None:
                raise
            raise recovery from error

    def _produce(self, producer: ProducerClient, undelivered: list[str]) -> None:
        """Produce the changed entries of the store, with a delivery report on the last one."""
        topic, partition = self.changelog
        entries = self.store.drain()
        if self.from_source:
            return
        last = len(entries) - 1
        changelog_headers = self.store.changelog_headers
        headers = (
            None if changelog_headers is None else list(changelog_headers)
        )  # confluent-kafka takes no tuple
        for index, (key, value, timestamp_ms) in enumerate(entries):
            # A report on the last record alone: delivery is in order, and reports are not free.
            report = None
            if index == last:
                report = with_account(_reporter(self, undelivered), producer.written)
            # librdkafka takes 0 for no timestamp and writes the current time; a negative one is
            # written as it is, and replayed as 0.
            time_ms = timestamp_ms or NO_TIME
            record_headers = None if value is None else headers
            try:
                producer.produce(
                    topic, value, key, partition, report, None, time_ms, record_headers
                )
            except BufferError:
                producer.make_room()
                producer.produce(
                    topic, value, key, partition, report, None, time_ms, record_headers
                )


def _reporter(logged: LoggedStore, undelivered: list[str]) -> Callable[[Any, Any], None]:
    """Return a delivery report that sets the store's position or notes why nothing was delivered.

    It refers to nothing of the task: a producer keeps the reports of what it could not deliver, and
    would keep itself alive through the task.
    """

    def update_position(error: Any, message: Any) -> None:
        if error is not None:
            undelivered.append(str(error))
        elif message.offset() < logged.position:
            # Also where the broker took the record for a duplicate and returned no offset.
            undelivered.append(
                f"{logged.changelog} went back from {logged.position} to {message.offset()}"
            )
        else:
            logged.position = message.offset() + 1

    return update_position
