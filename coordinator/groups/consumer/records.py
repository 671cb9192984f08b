"""Encode and decode consumer group records of `__consumer_offsets`, as Kafka 4.3 writes them.

Keys aren't flexible; values have one version, 0, which is, and what later releases added are tagged
fields: the group's metadata hash, the time of a target assignment, the epoch of each partition of a
current assignment. A value without them, of an older broker, is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from coordinator.groups.consumer.record_types import (
    ClassicMemberMetadata,
    ConsumerGroupForgotten,
    ConsumerGroupSaved,
    ConsumerMemberForgotten,
    ConsumerMemberSaved,
    CurrentAssignmentForgotten,
    CurrentAssignmentSaved,
    MemberState,
    PartitionEpochs,
    Record,
    RegexForgotten,
    RegexResolved,
    SubscriptionMetadataForgotten,
    SubscriptionMetadataSaved,
    TargetAssignmentForgotten,
    TargetAssignmentSaved,
    TargetEpochForgotten,
    TargetEpochSaved,
)
from coordinator.shard.record_fields import (
    EncodedKey,
    EncodedValue,
    FieldReader,
    FieldWriter,
    open_value_reader,
)

GROUP_KEY = 3
SUBSCRIPTION_METADATA_KEY = 4
MEMBER_KEY = 5
TARGET_EPOCH_KEY = 6
TARGET_ASSIGNMENT_KEY = 7
CURRENT_ASSIGNMENT_KEY = 8
REGEX_KEY = 16

VALUE_VERSION = 0
# The only tag of each of these structs.
METADATA_HASH_TAG = CLASSIC_MEMBER_TAG = ASSIGNED_MS_TAG = EPOCHS_TAG = 0
# The default of Kafka's schema for a member without the tag; one that isn't classic has a null tag.
UNTAGGED_CLASSIC_MEMBER = ClassicMemberMetadata(0, ())


def encode_consumer_record(record: Record) -> tuple[EncodedKey, EncodedValue]:
    """Return the key and value of a record of a consumer group.

    Raises ValueError for a record that this broker only reads.
    """
    return _encode_key(record), _encode_value(record)


def _encode_key(record: Record) -> bytes:
    match record:
        case ConsumerGroupSaved() | ConsumerGroupForgotten():
            return _encode_typed_key(GROUP_KEY, record.group_id)
        case SubscriptionMetadataSaved() | SubscriptionMetadataForgotten():
            return _encode_typed_key(SUBSCRIPTION_METADATA_KEY, record.group_id)
        case ConsumerMemberSaved() | ConsumerMemberForgotten():
            return _encode_typed_key(MEMBER_KEY, record.group_id, record.member_id)
        case TargetEpochSaved() | TargetEpochForgotten():
            return _encode_typed_key(TARGET_EPOCH_KEY, record.group_id)
        case TargetAssignmentSaved() | TargetAssignmentForgotten():
            return _encode_typed_key(TARGET_ASSIGNMENT_KEY, record.group_id, record.member_id)
        case CurrentAssignmentSaved() | CurrentAssignmentForgotten():
            return _encode_typed_key(CURRENT_ASSIGNMENT_KEY, record.group_id, record.member_id)
        case RegexResolved() | RegexForgotten():
            return _encode_typed_key(REGEX_KEY, record.group_id, record.regex)


def _encode_value(record: Record) -> bytes | None:
    """Return the value of a record, None for a tombstone."""
    match record:
        case ConsumerGroupSaved():
            return _encode_group_value(record)
        case ConsumerMemberSaved():
            return _encode_member_value(record)
        case TargetEpochSaved():
            return _encode_target_epoch_value(record)
        case TargetAssignmentSaved():
            return _encode_target_assignment_value(record)
        case CurrentAssignmentSaved():
            return _encode_current_assignment_value(record)
        case RegexResolved():
            return _encode_regex_value(record)
        case SubscriptionMetadataSaved():
            raise ValueError(f"{record} is of a broker older than Kafka 4.1; it is only read")
        case _:
            return None


def decode_consumer_record(
    record_type: int, key_reader: FieldReader, value: bytes | None
) -> Record:
    """Decode a record of a consumer group by its type, one of `DECODERS`.

    `key_reader` has read the type already.
    """
    return DECODERS[record_type](key_reader, None if value is None else _create_reader(value))


def _create_reader(value: bytes) -> FieldReader:
    return open_value_reader(value, newest_version=VALUE_VERSION, first_flexible_version=0)[0]


def _create_writer() -> FieldWriter:
    return FieldWriter(VALUE_VERSION, flexible=True)


def _encode_typed_key(record_type: int, *names: str) -> bytes:
    key = FieldWriter(record_type)
    for name in names:
        key.write_nullable_string(name)
    return key.to_bytes()


# The group


def _encode_group_value(record: ConsumerGroupSaved) -> bytes:
    value = _create_writer()
    value.write_int32(record.epoch)
    value.write_tagged_fields(_encode_int64_tag(METADATA_HASH_TAG, record.metadata_hash))
    return value.to_bytes()


def _decode_group(key: FieldReader, value: FieldReader | None) -> Record:
    group_id = key.read_string()
    if value is None:
        return ConsumerGroupForgotten(group_id)
    epoch = value.read_int32()
    return ConsumerGroupSaved(
        group_id, epoch, _decode_int64_tag(value.read_tagged_fields(), METADATA_HASH_TAG)
    )


def _decode_subscription_metadata(key: FieldReader, value: FieldReader | None) -> Record:
    group_id = key.read_string()
    if value is None:
        return SubscriptionMetadataForgotten(group_id)
    return SubscriptionMetadataSaved(group_id)


# Members


def _encode_member_value(record: ConsumerMemberSaved) -> bytes:
    value = _create_writer()
    value.write_nullable_string(record.instance_id)
    value.write_nullable_string(record.rack_id)
    value.write_nullable_string(record.client_id)
    value.write_nullable_string(record.client_host)
    value.write_string_array(record.topics)
    value.write_nullable_string(record.regex)
    value.write_int32(record.rebalance_timeout_ms)
    value.write_nullable_string(record.assignor)
    value.write_tagged_fields(_encode_classic_tag(record.classic))
    return value.to_bytes()


def _decode_member(key: FieldReader, value: FieldReader | None) -> Record:
    group_id, member_id = key.read_string(), key.read_string()
    if value is None:
        return ConsumerMemberForgotten(group_id, member_id)
    return ConsumerMemberSaved(
        group_id=group_id,
        member_id=member_id,
        instance_id=value.read_nullable_string(),
        rack_id=value.read_nullable_string(),
        client_id=value.read_string(),
        client_host=value.read_string(),
        topics=value.read_string_array(),
        regex=value.read_nullable_string(),
        rebalance_timeout_ms=value.read_int32(),
        assignor=value.read_nullable_string(),
        classic=_decode_classic_tag(value.read_tagged_fields().get(CLASSIC_MEMBER_TAG)),
    )


def _encode_classic_tag(classic: ClassicMemberMetadata | None) -> dict[int, bytes]:
    """Encode what a classic member brings to a consumer group as a tagged field of its record.

    A byte says whether a struct follows: 0 and nothing, or 1 and the struct.
    """
    if classic == UNTAGGED_CLASSIC_MEMBER:
        return {}
    field = FieldWriter.for_tagged_field()
    field.write_int8(0 if classic is None else 1)
    if classic is not None:
        field.write_int32(classic.session_timeout_ms)
        field.write_array_length(len(classic.protocols))
        for name, metadata in classic.protocols:
            field.write_nullable_string(name)
            field.write_nullable_bytes(metadata)
            field.write_tagged_fields()
        field.write_tagged_fields()
    return {CLASSIC_MEMBER_TAG: field.to_bytes()}


def _decode_classic_tag(tag: bytes | None) -> ClassicMemberMetadata | None:
    if tag is None:
        return UNTAGGED_CLASSIC_MEMBER
    field = FieldReader.for_tagged_field(tag)
    if field.read_int8() == 0:
        return None
    session_timeout_ms = field.read_int32()
    protocols = []
    for _ in range(field.read_array_length()):
        protocols.append((field.read_string(), field.read_byte_field()))
        field.read_tagged_fields()
    return ClassicMemberMetadata(session_timeout_ms, tuple(protocols))


# The target assignment


def _encode_target_epoch_value(record: TargetEpochSaved) -> bytes:
    value = _create_writer()
    value.write_int32(record.epoch)
    value.write_tagged_fields(_encode_int64_tag(ASSIGNED_MS_TAG, record.assigned_at_ms))
    return value.to_bytes()


def _decode_target_epoch(key: FieldReader, value: FieldReader | None) -> Record:
    group_id = key.read_string()
    if value is None:
        return TargetEpochForgotten(group_id)
    epoch = value.read_int32()
    return TargetEpochSaved(
        group_id, epoch, _decode_int64_tag(value.read_tagged_fields(), ASSIGNED_MS_TAG)
    )


def _encode_target_assignment_value(record: TargetAssignmentSaved) -> bytes:
    value = _create_writer()
    value.write_array_length(len(record.partitions))
    for topic_id, partitions in record.partitions.items():
        value.write_raw_bytes(topic_id.bytes)
        value.write_int32_array(sorted(partitions))
        value.write_tagged_fields()
    value.write_tagged_fields()
    return value.to_bytes()


def _decode_target_assignment(key: FieldReader, value: FieldReader | None) -> Record:
    group_id, member_id = key.read_string(), key.read_string()
    if value is None:
        return TargetAssignmentForgotten(group_id, member_id)
    partitions: dict[UUID, frozenset[int]] = {}
    for _ in range(value.read_array_length()):
        topic_id = UUID(bytes=value.read_raw_bytes(16))
        partitions[topic_id] = frozenset(value.read_int32_array())
        value.read_tagged_fields()
    value.read_tagged_fields()
    return TargetAssignmentSaved(group_id, member_id, partitions)


# The current assignment


def _encode_current_assignment_value(record: CurrentAssignmentSaved) -> bytes:
    value = _create_writer()
    value.write_int32(record.epoch)
    value.write_int32(record.previous_epoch)
    value.write_int8(record.state)
    _write_partition_epochs(value, record.assigned)
    _write_partition_epochs(value, record.revoking)
    value.write_tagged_fields()
    return value.to_bytes()


def _write_partition_epochs(value: FieldWriter, topics: PartitionEpochs) -> None:
    value.write_array_length(len(topics))
    for topic_id, epochs in topics.items():
        partitions = sorted(epochs)
        value.write_raw_bytes(topic_id.bytes)
        value.write_int32_array(partitions)
        field = FieldWriter.for_tagged_field()
        field.write_int32_array([epochs[partition] for partition in partitions])
        value.write_tagged_fields({EPOCHS_TAG: field.to_bytes()} if partitions else {})


def _decode_current_assignment(key: FieldReader, value: FieldReader | None) -> Record:
    group_id, member_id = key.read_string(), key.read_string()
    if value is None:
        return CurrentAssignmentForgotten(group_id, member_id)
    epoch, previous_epoch, state = value.read_packed(">iib")
    assigned, revoking = _read_partition_epochs(value, epoch), _read_partition_epochs(value, epoch)
    value.read_tagged_fields()
    return CurrentAssignmentSaved(
        group_id=group_id,
        member_id=member_id,
        epoch=epoch,
        previous_epoch=previous_epoch,
        state=MemberState(state),
        assigned=assigned,
        revoking=revoking,
    )


def _read_partition_epochs(value: FieldReader, member_epoch: int) -> PartitionEpochs:
    """Read partitions with the member epochs at which they were assigned.

    Where the log doesn't say, a partition counts as assigned at the member's own epoch, or at 0 if
    the member is a static one that is away (-2).
    """
    topics: dict[UUID, dict[int, int]] = {}
    for _ in range(value.read_array_length()):
        topic_id = UUID(bytes=value.read_raw_bytes(16))
        partitions = value.read_int32_array()
        tag = value.read_tagged_fields().get(EPOCHS_TAG)
        epochs = () if tag is None else FieldReader.for_tagged_field(tag).read_int32_array()
        if len(epochs) != len(partitions):
            epochs = (max(0, member_epoch),) * len(partitions)
        topics[topic_id] = dict(zip(partitions, epochs, strict=True))
    return topics


# Regular expressions


def _encode_regex_value(record: RegexResolved) -> bytes:
    value = _create_writer()
    value.write_string_array(record.topics)
    value.write_packed(">qq", record.topics_version, record.resolved_at_ms)
    value.write_tagged_fields()
    return value.to_bytes()


def _decode_regex(key: FieldReader, value: FieldReader | None) -> Record:
    group_id, regex = key.read_string(), key.read_string()
    if value is None:
        return RegexForgotten(group_id, regex)
    topics = value.read_string_array()
    version, resolved_ms = value.read_packed(">qq")
    value.read_tagged_fields()
    return RegexResolved(group_id, regex, topics, version, resolved_ms)


DECODERS: Mapping[int, Callable[[FieldReader, FieldReader | None], Record]] = {
    GROUP_KEY: _decode_group,
    SUBSCRIPTION_METADATA_KEY: _decode_subscription_metadata,
    MEMBER_KEY: _decode_member,
    TARGET_EPOCH_KEY: _decode_target_epoch,
    TARGET_ASSIGNMENT_KEY: _decode_target_assignment,
    CURRENT_ASSIGNMENT_KEY: _decode_current_assignment,
    REGEX_KEY: _decode_regex,
}


def _encode_int64_tag(tag: int, value: int) -> dict[int, bytes]:
    """Return a tagged int64 field, which is left out at its default, 0."""
    return {tag: value.to_bytes(8, "big", signed=True)} if value else {}


def _decode_int64_tag(tags: Mapping[int, bytes], tag: int) -> int:
    return int.from_bytes(tags.get(tag, b""), "big", signed=True)
