"""Encode and decode streams group records of `__consumer_offsets`, as Kafka 4.4 writes them.

Keys aren't flexible; values have one version, 0, which is. What later releases added to values are
tagged fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from coordinator.groups.streams.record_types import (
    NO_EPOCH,
    Record,
    StreamsCurrentAssignmentForgotten,
    StreamsCurrentAssignmentSaved,
    StreamsGroupForgotten,
    StreamsGroupSaved,
    StreamsMemberForgotten,
    StreamsMemberSaved,
    StreamsMemberState,
    StreamsTargetAssignmentForgotten,
    StreamsTargetAssignmentSaved,
    StreamsTargetEpochForgotten,
    StreamsTargetEpochSaved,
    StreamsTopologyForgotten,
    StreamsTopologySaved,
    Tags,
)
from coordinator.groups.streams.tasks import (
    AssignedTasks,
    TaskEpochs,
    TaskRoles,
    TaskSet,
    group_by_subtopology,
)
from coordinator.groups.streams.topology_record import read_topology, write_topology
from coordinator.shard.record_fields import (
    EncodedKey,
    EncodedValue,
    FieldReader,
    FieldWriter,
    open_value_reader,
)

GROUP_KEY = 17
MEMBER_KEY = 19
TARGET_EPOCH_KEY = 20
TARGET_ASSIGNMENT_KEY = 21
CURRENT_ASSIGNMENT_KEY = 22
TOPOLOGY_KEY = 23

VALUE_VERSION = 0
VALIDATED_EPOCH_TAG, CONFIGS_TAG, STORED_EPOCH_TAG, FAILED_EPOCH_TAG = range(4)
ASSIGNED_MS_TAG = ASSIGNMENT_EPOCHS_TAG = 0


def encode_streams_record(record: Record) -> tuple[EncodedKey, EncodedValue]:
    """Return the key and value of a record of a streams group; None for a tombstone's value."""
    kind = record.__class__
    member_key = _MEMBER_KEYS.get(kind)
    if member_key is None:
        key = _encode_typed_key(_GROUP_KEYS[kind], record.group_id)
    else:
        key = _encode_typed_key(member_key, record.group_id, record.member_id)  # type: ignore[union-attr]
    write = _VALUE_WRITERS.get(kind)
    if write is None:
        return key, None
    value = FieldWriter(VALUE_VERSION, flexible=True)
    write(value, record)
    return key, value.to_bytes()


def decode_streams_record(record_type: int, key_reader: FieldReader, value: bytes | None) -> Record:
    """Decode a record of a streams group by its type, one of `DECODERS`.

    `key_reader` has read the type already.
    """
    if value is None:
        return DECODERS[record_type](key_reader, None)
    reader, _ = open_value_reader(value, newest_version=VALUE_VERSION, first_flexible_version=0)
    return DECODERS[record_type](key_reader, reader)


@lru_cache(16_384)  # the records of a group's members are written again and again
def _encode_typed_key(record_type: int, *names: str) -> bytes:
    key = FieldWriter(record_type)
    for name in names:
        key.write_nullable_string(name)
    return key.to_bytes()


# The group


def _write_group(value: FieldWriter, record: StreamsGroupSaved) -> None:
    value.write_packed(">iq", record.epoch, record.metadata_hash)
    configs = FieldWriter.for_tagged_field()
    _write_pairs(configs, record.assignment_configs)
    value.write_tagged_fields(
        {
            **_encode_number_tag(VALIDATED_EPOCH_TAG, record.validated_topology_epoch, NO_EPOCH),
            **({CONFIGS_TAG: configs.to_bytes()} if record.assignment_configs else {}),
            **_encode_number_tag(STORED_EPOCH_TAG, record.stored_description_epoch, NO_EPOCH),
            **_encode_number_tag(FAILED_EPOCH_TAG, record.failed_description_epoch, NO_EPOCH),
        }
    )


def _decode_group(key: FieldReader, value: FieldReader | None) -> Record:
    group_id = key.read_string()
    if value is None:
        return StreamsGroupForgotten(group_id)
    epoch, metadata_hash = value.read_packed(">iq")
    tags = value.read_tagged_fields()
    configs = tags.get(CONFIGS_TAG)
    return StreamsGroupSaved(
        group_id,
        epoch,
        metadata_hash,
        _decode_number_tag(tags, VALIDATED_EPOCH_TAG, NO_EPOCH),
        () if configs is None else _read_pairs(FieldReader.for_tagged_field(configs)),
        _decode_number_tag(tags, STORED_EPOCH_TAG, NO_EPOCH),
        _decode_number_tag(tags, FAILED_EPOCH_TAG, NO_EPOCH),
    )


def _write_topology(value: FieldWriter, record: StreamsTopologySaved) -> None:
    write_topology(value, record.topology)


def _decode_topology(key: FieldReader, value: FieldReader | None) -> Record:
    group_id = key.read_string()
    if value is None:
        return StreamsTopologyForgotten(group_id)
    return StreamsTopologySaved(group_id, read_topology(value))


# Members


def _write_member(value: FieldWriter, record: StreamsMemberSaved) -> None:
    value.write_nullable_string(record.instance_id)
    value.write_nullable_string(record.rack_id)
    value.write_nullable_string(record.client_id)
    value.write_nullable_string(record.client_host)
    value.write_packed(">ii", record.rebalance_timeout_ms, record.topology_epoch)
    value.write_nullable_string(record.process_id)
    value.write_int8(-1 if record.endpoint is None else 1)  # whether a struct follows
    if record.endpoint is not None:
        host, port = record.endpoint
        value.write_nullable_string(host)
        value.write_packed(">H", port)
        value.write_tagged_fields()
    _write_pairs(value, record.client_tags)
    value.write_tagged_fields()


def _decode_member(key: FieldReader, value: FieldReader | None) -> Record:
    group_id, member_id = key.read_string(), key.read_string()
    if value is None:
        return StreamsMemberForgotten(group_id, member_id)
    instance_id, rack_id = value.read_nullable_string(), value.read_nullable_string()
    client_id, client_host = value.read_string(), value.read_string()
    rebalance_timeout_ms, topology_epoch = value.read_packed(">ii")
    process_id = value.read_string()
    endpoint = None
    if value.read_int8() >= 0:
        endpoint = (value.read_string(), *value.read_packed(">H"))
        value.read_tagged_fields()
    client_tags = _read_pairs(value)
    value.read_tagged_fields()
    return StreamsMemberSaved(
        group_id=group_id,
        member_id=member_id,
        instance_id=instance_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=rebalance_timeout_ms,
        topology_epoch=topology_epoch,
        process_id=process_id,
        endpoint=endpoint,
        client_tags=client_tags,
    )


# Assignments


def _write_target_epoch(value: FieldWriter, record: StreamsTargetEpochSaved) -> None:
    value.write_int32(record.epoch)
    value.write_tagged_fields(_encode_number_tag(ASSIGNED_MS_TAG, record.assigned_at_ms, 0, 8))


def _decode_target_epoch(key: FieldReader, value: FieldReader | None) -> Record:
    group_id = key.read_string()
    if value is None:
        return StreamsTargetEpochForgotten(group_id)
    epoch = value.read_int32()
    return StreamsTargetEpochSaved(
        group_id, epoch, _decode_number_tag(value.read_tagged_fields(), ASSIGNED_MS_TAG, 0)
    )


def _write_target_assignment(value: FieldWriter, record: StreamsTargetAssignmentSaved) -> None:
    for tasks in (record.tasks.active, record.tasks.standby, record.tasks.warmup):
        _write_tasks(value, tasks)
    value.write_tagged_fields()


def _decode_target_assignment(key: FieldReader, value: FieldReader | None) -> Record:
    group_id, member_id = key.read_string(), key.read_string()
    if value is None:
        return StreamsTargetAssignmentForgotten(group_id, member_id)
    roles = TaskRoles(*(_read_tasks(value) for _ in range(3)))
    value.read_tagged_fields()
    return StreamsTargetAssignmentSaved(group_id, member_id, roles)


def _write_current_assignment(value: FieldWriter, record: StreamsCurrentAssignmentSaved) -> None:
    value.write_packed(">iib", record.epoch, record.previous_epoch, record.state)
    for assigned in (record.assigned, record.revoking):
        _write_task_epochs(value, assigned.active)
        _write_tasks(value, assigned.standby)
        _write_tasks(value, assigned.warmup)
    value.write_tagged_fields()


def _decode_current_assignment(key: FieldReader, value: FieldReader | None) -> Record:
    group_id, member_id = key.read_string(), key.read_string()
    if value is None:
        return StreamsCurrentAssignmentForgotten(group_id, member_id)
    epoch, previous_epoch, state = value.read_packed(">iib")
    assigned, revoking = (
        AssignedTasks(_read_task_epochs(value, epoch), _read_tasks(value), _read_tasks(value))
        for _ in range(2)
    )
    value.read_tagged_fields()
    return StreamsCurrentAssignmentSaved(
        group_id=group_id,
        member_id=member_id,
        epoch=epoch,
        previous_epoch=previous_epoch,
        state=StreamsMemberState(state),
        assigned=assigned,
        revoking=revoking,
    )


def _write_tasks(value: FieldWriter, tasks: TaskSet) -> None:
    if not tasks:  # as most roles of most members
        value.write_array_length(0)
        return
    partitions = group_by_subtopology(tasks)
    value.write_array_length(len(partitions))
    for subtopology_id, indexes in partitions.items():
        value.write_nullable_string(subtopology_id)
        value.write_int32_array(indexes)
        value.write_tagged_fields()


def _read_tasks(value: FieldReader) -> TaskSet:
    tasks: set[tuple[str, int]] = set()
    for _ in range(value.read_array_length()):
        subtopology_id = value.read_string()
        tasks.update((subtopology_id, index) for index in value.read_int32_array())
        value.read_tagged_fields()
    return frozenset(tasks)


def _write_task_epochs(value: FieldWriter, tasks: TaskEpochs) -> None:
    if not tasks:
        value.write_array_length(0)
        return
    partitions = group_by_subtopology(tasks)
    value.write_array_length(len(partitions))
    for subtopology_id, indexes in partitions.items():
        value.write_nullable_string(subtopology_id)
        value.write_int32_array(indexes)
        field = FieldWriter.for_tagged_field()
        field.write_int32_array([tasks[subtopology_id, index] for index in indexes])
        value.write_tagged_fields({ASSIGNMENT_EPOCHS_TAG: field.to_bytes()})


def _read_task_epochs(value: FieldReader, member_epoch: int) -> TaskEpochs:
    """Read active tasks with the member epochs at which they were assigned.

    Where the log doesn't say, a task counts as assigned at the member's own epoch.
    """
    tasks: dict[tuple[str, int], int] = {}
    for _ in range(value.read_array_length()):
        subtopology_id, indexes = value.read_string(), value.read_int32_array()
        tag = value.read_tagged_fields().get(ASSIGNMENT_EPOCHS_TAG)
        epochs = () if tag is None else FieldReader.for_tagged_field(tag).read_int32_array()
        if len(epochs) != len(indexes):
            epochs = (member_epoch,) * len(indexes)
        tasks.update(
            ((subtopology_id, index), epoch) for index, epoch in zip(indexes, epochs, strict=True)
        )
    return tasks


_GROUP_KEYS: Mapping[type, int] = {
    StreamsGroupSaved: GROUP_KEY,
    StreamsGroupForgotten: GROUP_KEY,
    StreamsTopologySaved: TOPOLOGY_KEY,
    StreamsTopologyForgotten: TOPOLOGY_KEY,
    StreamsTargetEpochSaved: TARGET_EPOCH_KEY,
    StreamsTargetEpochForgotten: TARGET_EPOCH_KEY,
}
_MEMBER_KEYS: Mapping[type, int] = {
    StreamsMemberSaved: MEMBER_KEY,
    StreamsMemberForgotten: MEMBER_KEY,
    StreamsTargetAssignmentSaved: TARGET_ASSIGNMENT_KEY,
    StreamsTargetAssignmentForgotten: TARGET_ASSIGNMENT_KEY,
    StreamsCurrentAssignmentSaved: CURRENT_ASSIGNMENT_KEY,
    StreamsCurrentAssignmentForgotten: CURRENT_ASSIGNMENT_KEY,
}
_VALUE_WRITERS: Mapping[type, Callable[[FieldWriter, Any], None]] = {  # tombstones have none
    StreamsGroupSaved: _write_group,
    StreamsTopologySaved: _write_topology,
    StreamsMemberSaved: _write_member,
    StreamsTargetEpochSaved: _write_target_epoch,
    StreamsTargetAssignmentSaved: _write_target_assignment,
    StreamsCurrentAssignmentSaved: _write_current_assignment,
}
DECODERS: Mapping[int, Callable[[FieldReader, FieldReader | None], Record]] = {
    GROUP_KEY: _decode_group,
    MEMBER_KEY: _decode_member,
    TARGET_EPOCH_KEY: _decode_target_epoch,
    TARGET_ASSIGNMENT_KEY: _decode_target_assignment,
    CURRENT_ASSIGNMENT_KEY: _decode_current_assignment,
    TOPOLOGY_KEY: _decode_topology,
}


def _write_pairs(value: FieldWriter, pairs: Iterable[tuple[str, str]]) -> None:
    listed = list(pairs)
    value.write_array_length(len(listed))
    for key, text in listed:
        value.write_nullable_string(key)
        value.write_nullable_string(text)
        value.write_tagged_fields()


def _read_pairs(value: FieldReader) -> Tags:
    pairs = []
    for _ in range(value.read_array_length()):
        pairs.append((value.read_string(), value.read_string()))
        value.read_tagged_fields()
    return tuple(pairs)


def _encode_number_tag(tag: int, number: int, default: int, size: int = 4) -> dict[int, bytes]:
    """Encode a number of `size` bytes as a tagged field; return no field for its default."""
    return {} if number == default else {tag: number.to_bytes(size, "big", signed=True)}


def _decode_number_tag(tags: Mapping[int, bytes], tag: int, default: int) -> int:
    found = tags.get(tag)
    return default if found is None else int.from_bytes(found, "big", signed=True)
