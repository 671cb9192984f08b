"""A store with its changelog: what a transaction has changed in it goes there first.

Where the topic of a table takes the place of its store's changelog, what is in the store came from
there: the store is where the task's offset of that topic is.
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
    """A store, its changelog partition, and the first offset there that the store has not seen."""

    store: StateStore
    changelog: Partition
    topic_id: str
    position: int
    disk: Disk | None = None
    """What is committed, for those who read from outside."""
    from_source: bool = False
    """`changelog` is the topic of the store's table, which others write: nothing is logged."""
    committed: int = 0
    """Of such a one: the committed offset there, which a restore goes up to."""

    def log_changes(self, producer: ProducerClient, undelivered: list[str]) -> None:
        """Hand each dirty key to the changelog; `position` is known when all is delivered, or
        `undelivered` says why it was not. Raises a client's error named by its recovery."""
        try:
            self._produce(producer, undelivered)
        except Exception as error:
            recovery = recovery_from_produce(error, f"changelog {self.changelog}")
            if recovery is None:
                raise
            raise recovery from error

    def _produce(self, producer: ProducerClient, undelivered: list[str]) -> None:
        topic, partition = self.changelog
        entries = self.store.drain()
        if self.from_source:
            return
        last = len(entries) - 1
        given = self.store.changelog_headers
        headers = None if given is None else list(given)  # confluent-kafka takes no tuple
        for index, (key, value, timestamp_ms) in enumerate(entries):
            # A report on the last record alone: delivery is in order, and reports are not free.
            report = None
            if index == last:
                report = with_account(_reporter(self, undelivered), producer.written)
            # 0 would be taken for no timestamp, and written as the time that it is; less is written
            # as it is, and replayed as 0.
            time_ms = timestamp_ms or NO_TIME
            more = None if value is None else headers
            try:
                producer.produce(topic, value, key, partition, report, None, time_ms, more)
            except BufferError:
                producer.make_room()
                producer.produce(topic, value, key, partition, report, None, time_ms, more)


def _reporter(logged: LoggedStore, undelivered: list[str]) -> Callable[[Any, Any], None]:
    """Notes where a record of the changelog went. It holds nothing of the task: a producer keeps
    the reports of what it could not deliver, and would keep itself alive through the task."""

    def report(error: Any, message: Any) -> None:
        if error is not None:
            undelivered.append(str(error))
        elif message.offset() < logged.position:
            # Also where the broker took it for a repetition and did not say of which offset.
            undelivered.append(
                f"{logged.changelog} went back from {logged.position} to {message.offset()}"
            )
        else:
            logged.position = message.offset() + 1

    return report
