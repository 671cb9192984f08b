"""Offset records of `__consumer_offsets` as Kafka 4.3 writes them.

OffsetCommitKey, and OffsetCommitValue version 4, whose tagged topic id tells an offset of a topic
from one of its namesake that was deleted. Version 1 is the only one that can say when the offset is
to expire, and is written for those that do. Versions 0, 2 and 3 are read too.
"""

from __future__ import annotations

from uuid import UUID

from coordinator.offsets.state import NEVER, OffsetCommitted, OffsetForgotten, Record
from coordinator.shard.records import Reader, Writer, value_reader

LEGACY_OFFSET_KEY = 0
OFFSET_KEY = 1
VALUE_VERSION = 4
EXPIRING_VERSION = 1
TOPIC_ID_TAG = 0
KEY_TYPES = frozenset({LEGACY_OFFSET_KEY, OFFSET_KEY})


def encode_offset(record: Record) -> tuple[bytes, bytes | None]:
    key = Writer(OFFSET_KEY)
    key.string(record.group_id)
    key.string(record.topic)
    key.int32(record.partition)
    if isinstance(record, OffsetForgotten):
        return key.done(), None
    if record.expire_ms != NEVER:
        value = Writer(EXPIRING_VERSION)
        value.int64(record.offset)
        value.string(record.metadata)
        value.int64(record.commit_ms)
        value.int64(record.expire_ms)
        return key.done(), value.done()
    value = Writer(VALUE_VERSION, flexible=True)
    value.int64(record.offset)
    value.int32(record.leader_epoch)
    value.string(record.metadata)
    value.int64(record.commit_ms)
    value.tags(None if record.topic_id is None else {TOPIC_ID_TAG: record.topic_id.bytes})
    return key.done(), value.done()


def decode_offset(key: Reader, value: bytes | None) -> Record:
    """`key` is past its type."""
    group_id, topic, partition = key.string(), key.string(), key.int32()
    if value is None:
        return OffsetForgotten(group_id, topic, partition)
    reader, version = value_reader(value, newest=VALUE_VERSION, first_flexible=4)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata = reader.string()
    commit_ms = reader.int64()
    expire_ms = reader.int64() if version == EXPIRING_VERSION else NEVER
    topic_id = reader.tags().get(TOPIC_ID_TAG)
    return OffsetCommitted(
        group_id=group_id,
        topic=topic,
        partition=partition,
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_ms=commit_ms,
        topic_id=None if topic_id is None else UUID(bytes=topic_id),
        expire_ms=expire_ms,
    )
