"""Kafka in memory, as the runtime meets it: logs by offset, transactions, fencing, offsets.

Reads are of committed records up to the last stable offset, so that positions matter as they do
against a broker: a client that goes back reads again, one that skips has lost something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from streams.positions import Committed, Partition


class Message:
    """A record as confluent-kafka gives it."""

    def __init__(self, partition: Partition, offset: int, entry: Entry) -> None:
        self._partition, self._offset, self._entry = partition, offset, entry

    def topic(self) -> str:
        return self._partition.topic

    def partition(self) -> int:
        return self._partition.number

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return self._entry.key

    def value(self) -> bytes | None:
        return self._entry.value

    def timestamp(self) -> tuple[int, int]:
        return 1, self._entry.timestamp_ms

    def headers(self) -> None:
        return None


@dataclass(slots=True)
class Transaction:
    """What one producer does between two ends."""

    written: set[Partition] = field(default_factory=set)
    offsets: dict[Partition, Committed] = field(default_factory=dict)
    committed: bool | None = None
    """None while it is open."""


class Entry(NamedTuple):
    """One offset of a log. A marker ends a transaction; a record without one is plain."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    transaction: Transaction | None = None
    is_marker: bool = False


class Kafka:
    """The cluster. `topics`: name to number of partitions."""

    def __init__(self, topics: dict[str, int] | None = None) -> None:
        self.logs: dict[Partition, list[Entry]] = {}
        self.starts: dict[Partition, int] = {}
        self.topic_ids: dict[str, str] = {}
        self.settings: dict[str, dict[str, str]] = {}
        """Of topics that have any of their own."""
        self.offsets: dict[Partition, Committed] = {}
        self.open_transactions: dict[object, Transaction] = {}
        """By whoever has it open: a transactional id."""
        self.epochs: dict[str, int] = {}
        """By transactional id: a producer with a lower one is fenced."""
        self.generations_over = 0
        """So many of the next commits of offsets are from members that the group has replaced."""
        self._ids = count(1)
        for topic, partitions in (topics or {}).items():
            self.create(topic, partitions)

    def create(self, topic: str, partitions: int) -> None:
        self.topic_ids[topic] = f"id-{next(self._ids)}"
        for number in range(partitions):
            self.logs[Partition(topic, number)] = []
            self.starts[Partition(topic, number)] = 0

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions, up to so many."""
        for number in range(self.partition_counts()[topic], partitions):
            self.logs[Partition(topic, number)] = []
            self.starts[Partition(topic, number)] = 0

    def delete(self, topic: str) -> None:
        for partition in [partition for partition in self.logs if partition.topic == topic]:
            del self.logs[partition], self.starts[partition]

    def partition_counts(self) -> dict[str, int]:
        topics = [partition.topic for partition in self.logs]
        return {topic: topics.count(topic) for topic in topics}

    def load(self, partition: Partition, *pairs: tuple[str | None, str | None]) -> None:
        """Append plain records, each with its offset as its timestamp."""
        log = self.logs[partition]
        for key, value in pairs:
            encoded = [None if each is None else each.encode() for each in (key, value)]
            log.append(Entry(encoded[0], encoded[1], len(log)))

    def append(self, partition: Partition, entry: Entry) -> int:
        """The offset of what was appended."""
        if entry.transaction is not None:
            entry.transaction.written.add(partition)
        self.logs[partition].append(entry)
        return len(self.logs[partition]) - 1

    def end(self, transaction: Transaction, *, committed: bool) -> None:
        """Markers, then the offsets, as one."""
        transaction.committed = committed
        for partition in sorted(transaction.written):
            self.append(partition, Entry(None, None, 0, transaction, is_marker=True))
        if committed:
            self.offsets |= transaction.offsets

    def init_producer(self, name: str) -> int:
        """A new epoch: whatever the one before it has left open is aborted."""
        left = self.open_transactions.pop(name, None)
        if left is not None:
            self.end(left, committed=False)
        self.epochs[name] = self.epochs.get(name, 0) + 1
        return self.epochs[name]

    def pending(self, partition: Partition) -> bool:
        return any(partition in each.offsets for each in self.open_transactions.values())

    def high_watermark(self, partition: Partition) -> int:
        return len(self.logs[partition])

    def last_stable(self, partition: Partition) -> int:
        for offset, entry in enumerate(self.logs[partition]):
            if entry.transaction is not None and entry.transaction.committed is None:
                return offset
        return len(self.logs[partition])

    def since(self, partition: Partition, timestamp_ms: int) -> int:
        """The first offset that has this timestamp or a later one; the end where all are older."""
        log = self.logs[partition]
        offsets = range(self.starts[partition], len(log))
        return next((o for o in offsets if log[o].timestamp_ms >= timestamp_ms), len(log))

    def read(self, partition: Partition, position: int) -> Iterator[Message]:
        """Committed records from `position` on."""
        log = self.logs[partition]
        for offset in range(position, self.last_stable(partition)):
            entry = log[offset]
            aborted = entry.transaction is not None and not entry.transaction.committed
            if not (entry.is_marker or aborted):
                yield Message(partition, offset, entry)

    def committed(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Keys and values that a reader of committed records sees, partition after partition."""
        return [
            (message.key(), message.value())
            for partition in sorted(self.logs)
            if partition.topic == topic
            for message in self.read(partition, 0)
        ]
