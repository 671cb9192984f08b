"""Simulate a Kafka cluster in memory: logs by offset, transactions, committed offsets.

Offsets are Kafka's: the marker that ends a transaction takes one. Readers get committed records, up
to the first offset of a transaction that is open. A producer that begins with a transactional id
aborts what the one before it has left open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from streams.common.message_headers import Header, TypeAndTimestampMs
from streams.common.topic_partitions import OffsetAndMetadata, Partition

ReadUpTo: TypeAlias = int
"""Offset of the record that was found; without one, the end of what is committed."""

Headers = Sequence[Header]
_CREATE_TIME = 1


class Message:
    """Represents a record as confluent-kafka's consumer returns it.

    `number` is its place among the records of all partitions, in the order in which they were
    written.
    """

    __slots__ = (
        "_headers",
        "_key",
        "_offset",
        "_partition",
        "_timestamp_ms",
        "_value",
        "is_marker",
        "number",
        "transaction",
    )

    def __init__(
        self,
        partition: Partition,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers | None = None,
        *,
        number: int = 0,
        transaction: InMemoryTransaction | None = None,
        is_marker: bool = False,
    ) -> None:
        self._partition, self._offset = partition, offset
        self._key, self._value, self._timestamp_ms = key, value, timestamp_ms
        self._headers = headers
        self.number = number
        self.transaction = transaction
        self.is_marker = is_marker

    def __len__(self) -> int:
        """Return how many bytes the value has; as with confluent-kafka's, 0 if there is none."""
        return len(self._value or b"")

    def topic(self) -> str:
        return self._partition.topic

    def partition(self) -> int:
        return self._partition.number

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def timestamp(self) -> TypeAndTimestampMs:
        """Return confluent-kafka's pair: kind of timestamp (create time), and timestamp in ms."""
        return _CREATE_TIME, self._timestamp_ms

    def headers(self) -> list[Header] | None:
        """Return the headers as a list; None if there are none."""
        return list(self._headers) if self._headers else None

    def error(self) -> None:
        return None


@dataclass(slots=True, eq=False)
class InMemoryTransaction:
    """Represents one transaction; `committed` is None while it is open."""

    written: dict[Partition, None] = field(default_factory=dict)
    offsets: dict[Partition, OffsetAndMetadata] = field(default_factory=dict)
    committed: bool | None = None


class InMemoryLog:
    """Holds the records and markers of one partition."""

    __slots__ = ("_open", "entries", "start_offset")

    def __init__(self) -> None:
        self.entries: list[Message] = []
        self.start_offset = 0
        self._open: dict[InMemoryTransaction, int] = {}
        """The first offset of each open transaction."""

    @property
    def high_watermark(self) -> int:
        """Return the high watermark."""
        return len(self.entries)

    @property
    def last_stable_offset(self) -> int:
        """Return the last stable offset: the first one of the open transactions."""
        return min(self._open.values(), default=len(self.entries))

    def append_message(self, message: Message) -> None:
        """Append a record or a marker at the high watermark."""
        if message.transaction is not None and not message.is_marker:
            self._open.setdefault(message.transaction, len(self.entries))
        self.entries.append(message)

    def close_transaction(self, transaction: InMemoryTransaction) -> None:
        """Note that a transaction has ended: it no longer holds the last stable offset back."""
        self._open.pop(transaction, None)

    def find_first_committed(self, position: int) -> tuple[Message | None, ReadUpTo]:
        """Return the first committed record from `position` on, with its offset.

        None, and the end of what can be read, if there is none.
        """
        end = self.last_stable_offset
        while position < end:
            message = self.entries[position]
            transaction = message.transaction
            if not message.is_marker and (transaction is None or transaction.committed):
                return message, position
            position += 1
        return None, position

    def read_committed(self, position: int) -> Iterator[Message]:
        """Yield all committed records from `position` on."""
        message, position = self.find_first_committed(position)
        while message is not None:
            yield message
            message, position = self.find_first_committed(position + 1)


class InMemoryCluster:
    """Holds topics, the transactions on them, and the committed offsets of one group."""

    def __init__(self) -> None:
        self.creates_topics = True
        """Whether a topic is created when a record is written to it
        (`auto.create.topics.enable`)."""
        self.logs: dict[Partition, InMemoryLog] = {}
        self.committed_offsets: dict[Partition, OffsetAndMetadata] = {}
        self.producer_epochs: dict[str, int] = {}
        """The epoch of each transactional id: a producer with a lower one is fenced."""
        self.open_transactions: dict[str, InMemoryTransaction] = {}
        """The open transactions by transactional id."""
        self.partition_counts: dict[str, int] = {}
        self.topic_ids: dict[str, str] = {}
        self.topic_settings: dict[str, Mapping[str, str]] = {}
        self._ids, self._numbers = count(), count()

    def create_topic(
        self, topic: str, partitions: int, topic_settings: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic; one that exists stays as it is."""
        if topic in self.partition_counts:
            return
        self.partition_counts[topic] = partitions
        self.topic_ids[topic] = f"{next(self._ids):022}"
        self.topic_settings[topic] = topic_settings or {}
        self.logs |= {partition: InMemoryLog() for partition in self.partitions_of(topic)}

    def partitions_of(self, topic: str) -> list[Partition]:
        """Return the partitions of a topic."""
        return [Partition(topic, number) for number in range(self.partition_counts[topic])]

    def append_record(
        self,
        partition: Partition,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers | None = None,
        transaction: InMemoryTransaction | None = None,
    ) -> Message:
        """Append a record to a partition, in a transaction if one is given, and return it."""
        log = self.logs[partition]
        message = Message(
            partition,
            log.high_watermark,
            key,
            value,
            timestamp_ms,
            headers,
            number=next(self._numbers),
            transaction=transaction,
        )
        if transaction is not None:
            transaction.written[partition] = None
        log.append_message(message)
        return message

    def init_producer(self, transactional_id: str) -> int:
        """Return a new epoch for a transactional id, which fences its earlier producers.

        The transaction that the predecessor has left open is aborted (Kafka's InitProducerId).
        """
        if transactional_id in self.open_transactions:
            self.end_transaction(self.open_transactions[transactional_id], committed=False)
        self.producer_epochs[transactional_id] = self.producer_epochs.get(transactional_id, -1) + 1
        return self.producer_epochs[transactional_id]

    def end_transaction(self, transaction: InMemoryTransaction, *, committed: bool) -> None:
        """End a transaction: write its markers, and set its offsets if it is committed."""
        self.open_transactions = {
            name: each for name, each in self.open_transactions.items() if each is not transaction
        }
        transaction.committed = committed
        for partition in transaction.written:
            log = self.logs[partition]
            log.close_transaction(transaction)
            log.append_message(
                Message(
                    *(partition, log.high_watermark, None, None, -1),
                    number=next(self._numbers),
                    transaction=transaction,
                    is_marker=True,
                )
            )
        if committed:
            self.committed_offsets |= transaction.offsets

    def has_pending_offset(self, partition: Partition) -> bool:
        """Return whether an open transaction may still move the partition's committed offset."""
        return any(partition in each.offsets for each in self.open_transactions.values())
