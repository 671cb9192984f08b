"""Encode and decode the offset records of `__consumer_offsets` as Kafka 4.3 writes them.

OffsetCommitKey, and OffsetCommitValue version 4, whose tagged topic id tells an offset of a topic
from one of its namesake that was deleted. Version 1 is the only one that can say when the offset is
to expire, and is written for those that do. Versions 0, 2 and 3 are read too.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TypeAlias
from uuid import UUID

from coordinator.offsets.state import (
    NEVER,
    OffsetCommitted,
    OffsetForgotten,
    Record,
    create_offset_committed,
)
from coordinator.shard.record_fields import (
    EncodedKey,
    EncodedValue,
    FieldReader,
    FieldWriter,
    open_value_reader,
)

GroupId: TypeAlias = str
Topic: TypeAlias = str

LEGACY_OFFSET_KEY = 0
OFFSET_KEY = 1
VALUE_VERSION = 4
EXPIRING_VERSION = 1
TOPIC_ID_TAG = 0
KEY_TYPES = frozenset({LEGACY_OFFSET_KEY, OFFSET_KEY})

_INT32 = Struct(">i")
_VALUE_HEAD = Struct(">hqi")  # version, offset, leader epoch


def encode_offset_record(record: Record) -> tuple[EncodedKey, EncodedValue]:
    """Return the key and value of an offset record; the value is None for a tombstone."""
    key = encode_group_id_and_topic(record.group_id, record.topic) + _INT32.pack(record.partition)
    if isinstance(record, OffsetForgotten):
        return key, None
    if record.expires_at_ms != NEVER:
        return key, _encode_expiring_value(record)
    head = _VALUE_HEAD.pack(VALUE_VERSION, record.offset, record.leader_epoch)
    topic_id = record.topic_id
    tail = encode_value_tail(record.committed_at_ms, None if topic_id is None else topic_id.int)
    text = _encode_text(record.metadata) if record.metadata else b"\x01"
    return key, head + text + tail


def _encode_expiring_value(record: OffsetCommitted) -> bytes:
    value = FieldWriter(EXPIRING_VERSION)
    value.write_int64(record.offset)
    value.write_nullable_string(record.metadata)
    value.write_int64(record.committed_at_ms)
    value.write_int64(record.expires_at_ms)
    return value.to_bytes()


def _encode_text(value: str) -> bytes:
    writer = FieldWriter.for_tagged_field()
    writer.write_nullable_string(value)
    return writer.to_bytes()


# A commit has many partitions, and its records follow one another in the log: what they have in
# common is encoded, and decoded, once.


@lru_cache(256)
def encode_group_id_and_topic(group_id: str, topic: str) -> bytes:
    """Return the bytes of a key up to the partition: its type, the group id and the topic."""
    key = FieldWriter(OFFSET_KEY)
    key.write_nullable_string(group_id)
    key.write_nullable_string(topic)
    return key.to_bytes()


@lru_cache(256)
def _decode_group_id_and_topic(encoded_names: bytes) -> tuple[GroupId, Topic]:
    """Decode group id and topic from the bytes between a key's type and its partition.

    Raises ValueError if there is more in them.
    """
    reader = FieldReader(encoded_names)
    group_id, topic = reader.read_string(), reader.read_string()
    if encode_group_id_and_topic(group_id, topic)[2:] != encoded_names:
        raise ValueError(f"{encoded_names!r} is no group and topic")
    return group_id, topic


@lru_cache(256)
def encode_value_tail(committed_at_ms: int, topic_id: int | None) -> bytes:
    """Return the bytes that follow the metadata in a value: commit time and topic id.

    The topic id comes as a number: hashing a UUID for the cache takes longer than all the rest.
    """
    value = FieldWriter.for_tagged_field()
    value.write_int64(committed_at_ms)
    value.write_tagged_fields(
        None if topic_id is None else {TOPIC_ID_TAG: topic_id.to_bytes(16, "big")}
    )
    return value.to_bytes()


_decode_topic_id = lru_cache(256)(lambda data: UUID(bytes=data))


def decode_offset_record(key: bytes, value: bytes | None) -> Record:
    """Decode an offset record from its key and value; a value of None is a tombstone.

    Raises `UnknownRecordVersion`, and ValueError for damage.
    """
    group_id, topic = _decode_group_id_and_topic(key[2:-4])
    [partition] = _INT32.unpack(key[-4:])
    if value is None:
        return OffsetForgotten(group_id, topic, partition)
    reader, version = open_value_reader(
        value, newest_version=VALUE_VERSION, first_flexible_version=4
    )
    offset = reader.read_int64()
    leader_epoch = reader.read_int32() if version >= 3 else -1
    metadata = reader.read_string()
    committed_at_ms = reader.read_int64()
    expires_at_ms = reader.read_int64() if version == EXPIRING_VERSION else NEVER
    tagged = reader.read_tagged_fields().get(TOPIC_ID_TAG)
    topic_id = None if tagged is None else _decode_topic_id(tagged)
    return create_offset_committed(
        (
            group_id,
            topic,
            partition,
            offset,
            leader_epoch,
            metadata,
            committed_at_ms,
            topic_id,
            expires_at_ms,
        )
    )
