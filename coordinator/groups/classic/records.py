"""Encode and decode the records of classic groups in `__consumer_offsets`.

They are GroupMetadataKey, and GroupMetadataValue version 3, which is what Kafka 4.3 writes.
Versions 0 to 4 are read.
"""

from __future__ import annotations

from coordinator.groups.classic.state import GroupForgotten, GroupSaved, Record, SavedMember
from coordinator.shard.records import Reader, Writer, value_reader

GROUP_KEY = 2
VALUE_VERSION = 3


def encode_group(record: Record) -> tuple[bytes, bytes | None]:
    """Return the key and value of a group's record; the value is None for a tombstone."""
    key = Writer(GROUP_KEY)
    key.string(record.group_id)
    if isinstance(record, GroupForgotten):
        return key.done(), None
    value = Writer(VALUE_VERSION)
    value.string(record.protocol_type or "")
    value.int32(record.generation)
    value.string(record.protocol)
    value.string(record.leader)
    value.int64(record.phase_ms)
    value.array(len(record.members))
    for member in record.members:
        value.string(member.member_id)
        value.string(member.instance_id)
        value.string(member.client_id)
        value.string(member.client_host)
        value.int32(member.rebalance_timeout_ms)
        value.int32(member.session_timeout_ms)
        value.blob(member.subscription)
        value.blob(member.assignment)
    return key.done(), value.done()


def decode_group(key: Reader, value: bytes | None) -> Record:
    """Decode a group's record; `key_reader` has read the key's type already."""
    group_id = key.string()
    if value is None:
        return GroupForgotten(group_id)
    reader, version = value_reader(value, newest=4, first_flexible=4)
    protocol_type = reader.string()
    generation = reader.int32()
    protocol = reader.nullable_string()
    leader = reader.nullable_string()
    phase_ms = reader.int64() if version >= 2 else -1
    members = tuple(_member(reader, version) for _ in range(reader.array()))
    return GroupSaved(
        group_id=group_id,
        protocol_type=protocol_type or None,
        generation=generation,
        protocol=protocol,
        leader=leader,
        phase_ms=phase_ms,
        members=members,
    )


def _member(reader: Reader, version: int) -> SavedMember:
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms = reader.int32()
    subscription, assignment = reader.blob(), reader.blob()
    reader.tags()
    return SavedMember(
        member_id=member_id,
        instance_id=instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=session_timeout_ms
        if rebalance_timeout_ms < 0
        else rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        subscription=subscription,
        assignment=assignment,
    )
