"""Encode and decode the records of classic groups in `__consumer_offsets`.

They are GroupMetadataKey, and GroupMetadataValue version 3, which is what Kafka 4.3 writes.
Versions 0 to 4 are read.
"""

from __future__ import annotations

from coordinator.groups.classic.state import (
    ClassicGroupMember,
    GroupForgotten,
    GroupSaved,
    Record,
)
from coordinator.shard.record_fields import (
    EncodedKey,
    EncodedValue,
    FieldReader,
    FieldWriter,
    open_value_reader,
)

GROUP_KEY = 2
VALUE_VERSION = 3


def encode_group_record(record: Record) -> tuple[EncodedKey, EncodedValue]:
    """Return the key and value of a group's record; the value is None for a tombstone."""
    key = FieldWriter(GROUP_KEY)
    key.write_nullable_string(record.group_id)
    if isinstance(record, GroupForgotten):
        return key.to_bytes(), None
    value = FieldWriter(VALUE_VERSION)
    value.write_nullable_string(record.protocol_type or "")
    value.write_int32(record.generation)
    value.write_nullable_string(record.protocol)
    value.write_nullable_string(record.leader)
    value.write_int64(record.phase_started_at_ms)
    value.write_array_length(len(record.members))
    for member in record.members:
        value.write_nullable_string(member.member_id)
        value.write_nullable_string(member.instance_id)
        value.write_nullable_string(member.client_id)
        value.write_nullable_string(member.client_host)
        value.write_int32(member.rebalance_timeout_ms)
        value.write_int32(member.session_timeout_ms)
        [(_, subscription)] = member.protocols
        value.write_nullable_bytes(subscription)
        value.write_nullable_bytes(member.assignment)
    return key.to_bytes(), value.to_bytes()


def decode_group_record(key_reader: FieldReader, value: bytes | None) -> Record:
    """Decode a group's record; `key_reader` has read the key's type already."""
    group_id = key_reader.read_string()
    if value is None:
        return GroupForgotten(group_id)
    reader, version = open_value_reader(value, newest_version=4, first_flexible_version=4)
    protocol_type = reader.read_string()
    generation = reader.read_int32()
    protocol = reader.read_nullable_string()
    leader = reader.read_nullable_string()
    phase_ms = reader.read_int64() if version >= 2 else -1
    members = tuple(
        _decode_member(reader, version, protocol or "") for _ in range(reader.read_array_length())
    )
    return GroupSaved(
        group_id=group_id,
        protocol_type=protocol_type or None,
        generation=generation,
        protocol=protocol,
        leader=leader,
        phase_started_at_ms=phase_ms,
        members=members,
    )


def _decode_member(reader: FieldReader, version: int, protocol: str) -> ClassicGroupMember:
    member_id = reader.read_string()
    instance_id = reader.read_nullable_string() if version >= 3 else None
    client_id, client_host = reader.read_string(), reader.read_string()
    rebalance_timeout_ms = reader.read_int32() if version >= 1 else -1
    session_timeout_ms = reader.read_int32()
    subscription, assignment = reader.read_byte_field(), reader.read_byte_field()
    reader.read_tagged_fields()
    return ClassicGroupMember(
        member_id,
        instance_id,
        client_id,
        client_host,
        session_timeout_ms if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        session_timeout_ms,
        ((protocol, subscription),),
        assignment,
    )
