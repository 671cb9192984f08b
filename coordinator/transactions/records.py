"""Encode and decode records of `__transaction_state` as Kafka writes them.

TransactionLogKey, and TransactionLogValue in the version that `transaction.version` calls for: 0 at
level 0, else 1, which is flexible and has in tagged fields what only transactions v2 needs. Both
are read, so a log may have been written at any level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from coordinator.shard.record_fields import (
    EncodedKey,
    EncodedValue,
    FieldReader,
    FieldWriter,
    open_value_reader,
)
from coordinator.transactions.state import (
    NO_PRODUCER_ID,
    TopicPartition,
    TransactionForgotten,
    TransactionMetadata,
    TransactionRecord,
    TransactionSaved,
    TransactionStatus,
)

TRANSACTION_KEY = 0
PREVIOUS_PRODUCER_ID, NEXT_PRODUCER_ID, CLIENT_VERSION = 0, 1, 2  # tags


class TransactionCodec:
    """Encodes and decodes the records of transactions.

    `get_transaction_version` returns the level that is finalised, which may change while the broker
    runs.
    """

    def __init__(self, get_transaction_version: Callable[[], int]) -> None:
        self._transaction_version = get_transaction_version

    def encode_record(self, record: TransactionRecord) -> tuple[EncodedKey, EncodedValue]:
        """Encode a record as key and value; the value of a tombstone is None."""
        match record:
            case TransactionSaved(transaction):
                return _encode_key(transaction.transactional_id), _encode_value(
                    transaction, min(1, self._transaction_version())
                )
            case TransactionForgotten(transactional_id):
                return _encode_key(transactional_id), None

    def encode_together(self, records: Sequence[TransactionRecord]) -> None:
        return None

    def decode_record(self, key: bytes | None, value: bytes | None) -> TransactionRecord | None:
        """Decode a record from key and value; None for a record of another type."""
        reader = FieldReader(key)
        if reader.read_int16() != TRANSACTION_KEY:
            return None
        transactional_id = reader.read_string()
        if value is None:
            return TransactionForgotten(transactional_id)
        return TransactionSaved(_decode_transaction(transactional_id, value))


def _encode_key(transactional_id: str) -> bytes:
    writer = FieldWriter(TRANSACTION_KEY)
    writer.write_nullable_string(transactional_id)
    return writer.to_bytes()


def _encode_value(transaction: TransactionMetadata, version: int) -> bytes:
    writer = FieldWriter(version, flexible=version >= 1)
    writer.write_packed(
        ">qhib",
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.timeout_ms,
        transaction.status,
    )
    if transaction.status is TransactionStatus.EMPTY:
        writer.write_array_length(None)
    else:
        _write_partitions(writer, transaction)
    writer.write_packed(">qq", transaction.update_ms, transaction.start_ms)
    writer.write_tagged_fields(_encode_tagged_fields(transaction))
    return writer.to_bytes()


def _write_partitions(writer: FieldWriter, transaction: TransactionMetadata) -> None:
    topics = [
        (topic, [partition for _, partition in found])
        for topic, found in groupby(sorted(transaction.partitions), key=lambda tp: tp[0])
    ]
    writer.write_array_length(len(topics))
    for topic, partitions in topics:
        writer.write_nullable_string(topic)
        writer.write_array_length(len(partitions))
        for partition in partitions:
            writer.write_int32(partition)
        writer.write_tagged_fields()


def _encode_tagged_fields(transaction: TransactionMetadata) -> dict[int, bytes]:
    """Encode the tagged fields that aren't at their defaults."""
    tagged = {}
    if transaction.previous_producer_id != NO_PRODUCER_ID:
        tagged[PREVIOUS_PRODUCER_ID] = transaction.previous_producer_id.to_bytes(8, "big")
    if transaction.next_producer_id != NO_PRODUCER_ID:
        tagged[NEXT_PRODUCER_ID] = transaction.next_producer_id.to_bytes(8, "big")
    if transaction.client_version:
        tagged[CLIENT_VERSION] = transaction.client_version.to_bytes(2, "big")
    return tagged


def _decode_transaction(transactional_id: str, value: bytes) -> TransactionMetadata:
    reader, _ = open_value_reader(value, newest_version=1, first_flexible_version=1)
    producer_id, producer_epoch, timeout_ms, status = reader.read_packed(">qhib")
    partitions: set[TopicPartition] = set()
    for _ in range(reader.read_array_length()):
        topic = reader.read_string()
        partitions.update((topic, reader.read_int32()) for _ in range(reader.read_array_length()))
        reader.read_tagged_fields()
    update_ms, start_ms = reader.read_packed(">qq")
    tagged = {
        tag: int.from_bytes(data, "big", signed=True)
        for tag, data in reader.read_tagged_fields().items()
    }
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=timeout_ms,
        status=TransactionStatus(status),
        update_ms=update_ms,
        start_ms=start_ms,
        partitions=frozenset(partitions),
        previous_producer_id=tagged.get(PREVIOUS_PRODUCER_ID, NO_PRODUCER_ID),
        next_producer_id=tagged.get(NEXT_PRODUCER_ID, NO_PRODUCER_ID),
        client_version=tagged.get(CLIENT_VERSION, 0),
    )
