"""Encodes and decodes records of `__transaction_state` as Kafka writes them.

TransactionLogKey, and TransactionLogValue in the version that `transaction.version` calls for: 0 at
level 0, else 1, which is flexible and has in tagged fields what only transactions v2 needs. Both
are read, so a log may have been written at any level.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from coordinator.shard.records import Reader, Writer, value_reader
from coordinator.transactions.state import (
    NO_PRODUCER_ID,
    Record,
    Status,
    TopicPartition,
    Transaction,
    TransactionForgotten,
    TransactionSaved,
)

TRANSACTION_KEY = 0
PREVIOUS_PRODUCER_ID, NEXT_PRODUCER_ID, CLIENT_VERSION = 0, 1, 2  # tags


class TransactionCodec:
    """Encodes and decodes the records of transactions.

    `get_transaction_version` returns the level that is finalised, which may change while the broker
    runs.
    """

    def __init__(self, transaction_version: Callable[[], int]) -> None:
        self._transaction_version = transaction_version

    def encode(self, record: Record) -> tuple[bytes, bytes | None]:
        """Encode a record as key and value; the value of a tombstone is None."""
        match record:
            case TransactionSaved(transaction):
                return _key(transaction.transactional_id), _value(
                    transaction, min(1, self._transaction_version())
                )
            case TransactionForgotten(transactional_id):
                return _key(transactional_id), None

    def decode(self, key: bytes | None, value: bytes | None) -> Record | None:
        """Decode a record from key and value; None for a record of another type."""
        reader = Reader(key)
        if reader.int16() != TRANSACTION_KEY:
            return None
        transactional_id = reader.string()
        if value is None:
            return TransactionForgotten(transactional_id)
        return TransactionSaved(_transaction(transactional_id, value))


def _key(transactional_id: str) -> bytes:
    writer = Writer(TRANSACTION_KEY)
    writer.string(transactional_id)
    return writer.done()


def _value(transaction: Transaction, version: int) -> bytes:
    writer = Writer(version, flexible=version >= 1)
    writer.fixed(
        ">qhib",
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.timeout_ms,
        transaction.status,
    )
    if transaction.status is Status.EMPTY:
        writer.array(None)
    else:
        _partitions(writer, transaction)
    writer.fixed(">qq", transaction.update_ms, transaction.start_ms)
    writer.tags(_tagged(transaction))
    return writer.done()


def _partitions(writer: Writer, transaction: Transaction) -> None:
    topics = [
        (topic, [partition for _, partition in found])
        for topic, found in groupby(sorted(transaction.partitions), key=lambda tp: tp[0])
    ]
    writer.array(len(topics))
    for topic, partitions in topics:
        writer.string(topic)
        writer.array(len(partitions))
        for partition in partitions:
            writer.int32(partition)
        writer.tags()


def _tagged(transaction: Transaction) -> dict[int, bytes]:
    """Encode the tagged fields that aren't at their defaults."""
    tagged = {}
    if transaction.previous_producer_id != NO_PRODUCER_ID:
        tagged[PREVIOUS_PRODUCER_ID] = transaction.previous_producer_id.to_bytes(8, "big")
    if transaction.next_producer_id != NO_PRODUCER_ID:
        tagged[NEXT_PRODUCER_ID] = transaction.next_producer_id.to_bytes(8, "big")
    if transaction.client_version:
        tagged[CLIENT_VERSION] = transaction.client_version.to_bytes(2, "big")
    return tagged


def _transaction(transactional_id: str, value: bytes) -> Transaction:
    reader, _ = value_reader(value, newest=1, first_flexible=1)
    producer_id, producer_epoch, timeout_ms, status = reader.fixed(">qhib")
    partitions: set[TopicPartition] = set()
    for _ in range(reader.array()):
        topic = reader.string()
        partitions.update((topic, reader.int32()) for _ in range(reader.array()))
        reader.tags()
    update_ms, start_ms = reader.fixed(">qq")
    tagged = {tag: int.from_bytes(data, "big", signed=True) for tag, data in reader.tags().items()}
    return Transaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        status=Status(status),
        update_ms=update_ms,
        start_ms=start_ms,
        partitions=frozenset(partitions),
        previous_producer_id=tagged.get(PREVIOUS_PRODUCER_ID, NO_PRODUCER_ID),
        next_producer_id=tagged.get(NEXT_PRODUCER_ID, NO_PRODUCER_ID),
        client_version=tagged.get(CLIENT_VERSION, 0),
    )
