"""Offset records of `__consumer_offsets` as Kafka 4.3 writes them.

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
    key = _names(record.group_id, record.topic) + _INT32.pack(record.partition)
    if isinstance(record, OffsetForgotten):
        return key, None
    if record.expire_ms != NEVER:
        return key, _expiring(record)
    head = _HEAD.pack(VALUE_VERSION, record.offset, record.leader_epoch)
    topic_id = record.topic_id
    rest = _when_and_where(record.commit_ms, None if topic_id is None else topic_id.int)
    text = _text(record.metadata) if record.metadata else b"\x01"
    return key, head + text + rest


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


# A commit is of many partitions, and so is what lies in a row in the log: what they have in common
# is written, and read, once.


@lru_cache(256)
def _names(group_id: str, topic: str) -> bytes:
    """All of a key but the partition."""
    key = Writer(OFFSET_KEY)
    key.string(group_id)
    key.string(topic)
    return key.done()


@lru_cache(256)
def _named(names: bytes) -> tuple[str, str]:
    """Group and topic, from all of a key but its type and the partition."""
    reader = Reader(names)
    group_id, topic = reader.string(), reader.string()
    if _names(group_id, topic)[2:] != names:
        raise ValueError(f"{names!r} is no group and topic")
    return group_id, topic


@lru_cache(256)
def _when_and_where(commit_ms: int, topic_id: int | None) -> bytes:
    """What stands behind the metadata of a value. The topic id as a number: as a UUID it would take
    longer to be looked up than all the rest."""
    value = Writer.of_field()
    value.int64(commit_ms)
    value.tags(None if topic_id is None else {TOPIC_ID_TAG: topic_id.to_bytes(16, "big")})
    return value.done()


_topic_id = lru_cache(256)(lambda data: UUID(bytes=data))


def decode_offset(key: bytes, value: bytes | None) -> Record:
    """Raises UnknownVersion, and ValueError for damage."""
    group_id, topic = _named(key[2:-4])
    [partition] = _INT32.unpack(key[-4:])
    if value is None:
        return OffsetForgotten(group_id, topic, partition)
    reader, version = value_reader(value, newest=VALUE_VERSION, first_flexible=4)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata = reader.string()
    commit_ms = reader.int64()
    expire_ms = reader.int64() if version == EXPIRING_VERSION else NEVER
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
            commit_ms,
            topic_id,
            expire_ms,
        )
    )
