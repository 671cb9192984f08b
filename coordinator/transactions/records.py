"""Records of `__transaction_state` as Kafka writes them.

TransactionLogKey, and TransactionLogValue version 0: what Kafka itself writes until its
`transaction.version` feature is raised. Version 1 only adds fields for transactions v2 (next
producer id, the client's version) and the previous producer id, which says nothing without the last
epoch, for which there is no field. Version 1 is read all the same, for a log that Kafka wrote.
"""

from __future__ import annotations

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
VALUE_VERSION = 0
PREVIOUS_PRODUCER_ID_TAG = 0


class TransactionCodec:
    """Facts about transactions to bytes and back."""

    def encode(self, record: Record) -> tuple[bytes, bytes | None]:
        match record:
            case TransactionSaved(transaction):
                return _key(transaction.transactional_id), _value(transaction)
            case TransactionForgotten(transactional_id):
                return _key(transactional_id), None

    def decode(self, key: bytes | None, value: bytes | None) -> Record | None:
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


def _value(transaction: Transaction) -> bytes:
    writer = Writer(VALUE_VERSION)
    writer.int64(transaction.producer_id)
    writer.int16(transaction.producer_epoch)
    writer.int32(transaction.timeout_ms)
    writer.int8(transaction.status)
    if transaction.status is Status.EMPTY:
        writer.array(None)
    else:
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
    writer.int64(transaction.update_ms)
    writer.int64(transaction.start_ms)
    return writer.done()


def _transaction(transactional_id: str, value: bytes) -> Transaction:
    reader, _ = value_reader(value, newest=1, first_flexible=1)
    producer_id = reader.int64()
    producer_epoch = reader.int16()
    timeout_ms = reader.int32()
    status = Status(reader.int8())
    partitions: set[TopicPartition] = set()
    for _ in range(reader.array()):
        topic = reader.string()
        partitions.update((topic, reader.int32()) for _ in range(reader.array()))
        reader.tags()
    update_ms = reader.int64()
    start_ms = reader.int64()
    tagged = reader.tags().get(PREVIOUS_PRODUCER_ID_TAG)
    return Transaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        status=status,
        update_ms=update_ms,
        start_ms=start_ms,
        partitions=frozenset(partitions),
        previous_producer_id=(
            NO_PRODUCER_ID if tagged is None else int.from_bytes(tagged, "big", signed=True)
        ),
    )
