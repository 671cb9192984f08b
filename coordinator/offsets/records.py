"""Encode and decode the offset records of `__consumer_offsets` as Kafka 4.3 writes them.

OffsetCommitKey, and OffsetCommitValue version 4, whose tagged topic id tells an offset of a topic
from one of its namesake that was deleted. Version 1 is the only one that can say when the offset is
to expire, and is written for those that do. Versions 0, 2 and 3 are read too.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from uuid import UUID

from coordinator.offsets.state import (
    NEVER,
    OffsetCommitted,
    OffsetForgotten,
    Record,
    offset_committed,
)
from coordinator.shard.records import Reader, Writer, value_reader

LEGACY_OFFSET_KEY = 0
OFFSET_KEY = 1
VALUE_VERSION = 4
EXPIRING_VERSION = 1
TOPIC_ID_TAG = 0
KEY_TYPES = frozenset({LEGACY_OFFSET_KEY, OFFSET_KEY})

_INT32 = Struct(">i")
_HEAD = Struct(">hqi")  # version, offset, leader epoch


def encode_offset(record: Record) -> tuple[bytes, bytes | None]:
    """Return the key and value of an offset record; the value is None for a tombstone."""
    key = _names(record.group_id, record.topic) + _INT32.pack(record.partition)
    if isinstance(record, OffsetForgotten):
        return key, None
    if record.expire_ms != NEVER:
        return key, _expiring(record)
    head = _HEAD.pack(VALUE_VERSION, record.offset, record.leader_epoch)
    topic_id = record.topic_id
    tail = _when_and_where(record.commit_ms, None if topic_id is None else topic_id.int)
    text = _text(record.metadata) if record.metadata else b"\x01"
    return key, head + text + tail


def _expiring(record: OffsetCommitted) -> bytes:
    value = Writer(EXPIRING_VERSION)
    value.int64(record.offset)
    value.string(record.metadata)
    value.int64(record.commit_ms)
    value.int64(record.expire_ms)
    return value.done()


def _text(value: str) -> bytes:
    writer = Writer.of_field()
    writer.string(value)
    return writer.done()


# A commit has many partitions, and its records follow one another in the log: what they have in
# common is encoded, and decoded, once.


@lru_cache(256)
def _names(group_id: str, topic: str) -> bytes:
    """Return the bytes of a key up to the partition: its type, the group id and the topic."""
    key = Writer(OFFSET_KEY)
    key.string(group_id)
    key.string(topic)
    return key.done()


@lru_cache(256)
def _named(names: bytes) -> tuple[str, str]:
    """Decode group id and topic from the bytes between a key's type and its partition.

    Raises ValueError if there is more in them.
    """
    reader = Reader(names)
    group_id, topic = reader.string(), reader.string()
    if _names(group_id, topic)[2:] != names:
        raise ValueError(f"{names!r} is no group and topic")
    return group_id, topic


@lru_cache(256)
def _when_and_where(commit_ms: int, topic_id: int | None) -> bytes:
    """Return the bytes that follow the metadata in a value: commit time and topic id.

    The topic id comes as a number: hashing a UUID for the cache takes longer than all the rest.
    """
    value = Writer.of_field()
    value.int64(commit_ms)
    value.tags(None if topic_id is None else {TOPIC_ID_TAG: topic_id.to_bytes(16, "big")})
    return value.done()


_topic_id = lru_cache(256)(lambda data: UUID(bytes=data))


def decode_offset(key: bytes, value: bytes | None) -> Record:
    """Decode an offset record from its key and value; a value of None is a tombstone.

    Raises `UnknownRecordVersion`, and ValueError for damage.
    """
    group_id, topic = _named(key[2:-4])
    [partition] = _INT32.unpack(key[-4:])
    if value is None:
        return OffsetForgotten(group_id, topic, partition)
    reader, version = value_reader(value, newest=VALUE_VERSION, first_flexible=4)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata = reader.string()
    committed_at_ms = reader.int64()
    expires_at_ms = reader.int64() if version == EXPIRING_VERSION else NEVER
    tagged = reader.tags().get(TOPIC_ID_TAG)
    topic_id = None if tagged is None else _topic_id(tagged)
    return offset_committed(
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
