"""Task: one sub-topology on one partition, with its stores, its positions and its commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from state.directory import Lock
from state.store import Checkpoint
from state.transaction import TransactionalStore
from streams.errors import OutcomeUnknown
from streams.positions import Committed, Partition
from streams.runtime.clients import DataProducer
from streams.runtime.offsets import encode_metadata
from streams.topology.build import Subtopology
from streams.topology.compile import Receive, compile_subtopology


@dataclass(slots=True)
class LoggedStore:
    """A store, its changelog partition, and the first offset there that the store has not seen."""

    store: TransactionalStore[Any, Any]
    changelog: Partition
    topic_id: str
    position: int


class TaskContext:
    """What bound steps use of their task (see `streams.topology.nodes.Context`)."""

    COMMIT = "the results of a commit"
    __slots__ = ("_stores", "flushers", "make_room", "message", "produce")

    def __init__(self, producer: DataProducer, stores: Mapping[str, LoggedStore]) -> None:
        self.produce = producer.produce
        self.make_room = producer.make_room
        self.message: Any = None
        self.flushers: list[Callable[[], None]] = []
        self._stores = stores

    def store(self, name: str) -> TransactionalStore[Any, Any]:
        return self._stores[name].store

    def origin(self) -> str:
        message = self.message
        if message is None:
            return self.COMMIT
        return f"{message.topic()}[{message.partition()}]@{message.offset()}"


class Task:
    """One task while it runs. `positions` are the next offsets of the partitions that it reads."""

    def __init__(
        self,
        name: str,
        subtopology: Subtopology,
        *,
        positions: dict[Partition, int],
        stores: dict[str, LoggedStore],
        producer: DataProducer,
        lock: Lock,
    ) -> None:
        self.name = name
        self.positions = positions
        self.dirty = False
        self.context = TaskContext(producer, stores)
        self._stores = stores
        self._lock = lock
        self._undelivered: list[str] = []
        self.receivers: dict[str, Receive] = compile_subtopology(subtopology, self.context)

    def flush(self) -> None:
        """Let the steps that hold results back emit them, upstream first."""
        self.context.message = None
        for flush in reversed(self.context.flushers):
            flush()

    def log_changes(self, producer: DataProducer) -> None:
        """Hand each dirty key to its changelog; positions are known when all is delivered."""
        for logged in self._stores.values():
            topic, partition = logged.changelog
            entries = logged.store.drain()
            last = len(entries) - 1
            for index, (key, value, timestamp_ms) in enumerate(entries):
                # A report on the last record alone: delivery is in order, and reports are not free.
                report = _reporter(logged, self._undelivered) if index == last else None
                try:
                    producer.produce(topic, value, key, partition, report, None, timestamp_ms)
                except BufferError:
                    producer.make_room()
                    producer.produce(topic, value, key, partition, report, None, timestamp_ms)

    def changelogs(self) -> list[Partition]:
        return [logged.changelog for logged in self._stores.values()]

    def delivered(self, latest: Mapping[Partition, int]) -> None:
        """Positions from the changelogs' ends: for a producer that reports failures only."""
        for logged in self._stores.values():
            logged.position = latest[logged.changelog]

    def offsets(self) -> list[tuple[Partition, Committed]]:
        """What to commit: every input partition, each with the positions of all stores."""
        if self._undelivered:
            raise OutcomeUnknown(f"changelog not delivered: {', '.join(self._undelivered)}")
        metadata = encode_metadata({name: s.position for name, s in self._stores.items()})
        return [(p, Committed(offset, metadata)) for p, offset in self.positions.items()]

    def committed(self) -> None:
        """Kafka has committed: make the stores' changes durable."""
        for logged in self._stores.values():
            logged.store.commit(Checkpoint(logged.position, logged.topic_id))
        self.dirty = False

    def close(self) -> None:
        """Release stores and directory. What was not committed is forgotten."""
        # The steps hold the producer: it goes when the last task lets it go.
        self.receivers.clear()
        self.context.flushers.clear()
        for logged in self._stores.values():
            logged.store.close()
        self._lock.release()


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
