"""Encode and decode consumer group records of `__consumer_offsets`, as Kafka 4.3 writes them.

Keys aren't flexible; values have one version, 0, which is, and what later releases added are tagged
fields: the group's metadata hash, the time of a target assignment, the epoch of each partition of a
current assignment. A value without them, of an older broker, is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from coordinator.groups.consumer.facts import (
    ClassicMember,
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
from coordinator.shard.records import Reader, Writer, value_reader

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
UNTAGGED = ClassicMember(0, ())


def encode_consumer(record: Record) -> tuple[bytes, bytes | None]:
    """Return the key and value of a record of a consumer group.

    Raises ValueError for a record that this broker only reads.
    """
    return _key_of(record), _value_of(record)


def _key_of(record: Record) -> bytes:
    match record:
        case ConsumerGroupSaved() | ConsumerGroupForgotten():
            return _key(GROUP_KEY, record.group_id)
        case SubscriptionMetadataSaved() | SubscriptionMetadataForgotten():
            return _key(SUBSCRIPTION_METADATA_KEY, record.group_id)
        case ConsumerMemberSaved() | ConsumerMemberForgotten():
            return _key(MEMBER_KEY, record.group_id, record.member_id)
        case TargetEpochSaved() | TargetEpochForgotten():
            return _key(TARGET_EPOCH_KEY, record.group_id)
        case TargetAssignmentSaved() | TargetAssignmentForgotten():
            return _key(TARGET_ASSIGNMENT_KEY, record.group_id, record.member_id)
        case CurrentAssignmentSaved() | CurrentAssignmentForgotten():
            return _key(CURRENT_ASSIGNMENT_KEY, record.group_id, record.member_id)
        case RegexResolved() | RegexForgotten():
            return _key(REGEX_KEY, record.group_id, record.regex)


def _value_of(record: Record) -> bytes | None:
    """Return the value of a record, None for a tombstone."""
    match record:
        case ConsumerGroupSaved():
            return _group_value(record)
        case ConsumerMemberSaved():
            return _member_value(record)
        case TargetEpochSaved():
            return _target_epoch_value(record)
        case TargetAssignmentSaved():
            return _target_assignment_value(record)
        case CurrentAssignmentSaved():
            return _current_assignment_value(record)
        case RegexResolved():
            return _regex_value(record)
        case SubscriptionMetadataSaved():
            raise ValueError(f"{record} is of a broker older than Kafka 4.1; it is only read")
        case _:
            return None


def decode_consumer(kind: int, key: Reader, value: bytes | None) -> Record:
    """Decode a record of a consumer group by its type, one of `DECODERS`.

    `key_reader` has read the type already.
    """
    return DECODERS[kind](key, None if value is None else _reader(value))


def _reader(value: bytes) -> Reader:
    return value_reader(value, newest=VALUE_VERSION, first_flexible=0)[0]


def _writer() -> Writer:
    return Writer(VALUE_VERSION, flexible=True)


def _key(kind: int, *names: str) -> bytes:
    key = Writer(kind)
    for name in names:
        key.string(name)
    return key.done()


# The group


def _group_value(record: ConsumerGroupSaved) -> bytes:
    value = _writer()
    value.int32(record.epoch)
    value.tags(_int64_tag(METADATA_HASH_TAG, record.metadata_hash))
    return value.done()


def _group(key: Reader, value: Reader | None) -> Record:
    group_id = key.string()
    if value is None:
        return ConsumerGroupForgotten(group_id)
    epoch = value.int32()
    return ConsumerGroupSaved(group_id, epoch, _tagged_int64(value.tags(), METADATA_HASH_TAG))


def _subscription_metadata(key: Reader, value: Reader | None) -> Record:
    group_id = key.string()
    if value is None:
        return SubscriptionMetadataForgotten(group_id)
    return SubscriptionMetadataSaved(group_id)


# Members


def _member_value(record: ConsumerMemberSaved) -> bytes:
    value = _writer()
    value.string(record.instance_id)
    value.string(record.rack_id)
    value.string(record.client_id)
    value.string(record.client_host)
    value.strings(record.topics)
    value.string(record.regex)
    value.int32(record.rebalance_timeout_ms)
    value.string(record.assignor)
    value.tags(_classic_tag(record.classic))
    return value.done()


def _member(key: Reader, value: Reader | None) -> Record:
    group_id, member_id = key.string(), key.string()
    if value is None:
        return ConsumerMemberForgotten(group_id, member_id)
    return ConsumerMemberSaved(
        group_id=group_id,
        member_id=member_id,
        instance_id=value.nullable_string(),
        rack_id=value.nullable_string(),
        client_id=value.string(),
        client_host=value.string(),
        topics=value.strings(),
        regex=value.nullable_string(),
        rebalance_timeout_ms=value.int32(),
        assignor=value.nullable_string(),
        classic=_classic(value.tags().get(CLASSIC_MEMBER_TAG)),
    )


def _classic_tag(classic: ClassicMember | None) -> dict[int, bytes]:
    """Return the tagged field: a byte that says whether there is a struct, and the struct."""
    if classic == UNTAGGED:
        return {}
    field = Writer.of_field()
    field.int8(0 if classic is None else 1)
    if classic is not None:
        field.int32(classic.session_timeout_ms)
        field.array(len(classic.protocols))
        for name, metadata in classic.protocols:
            field.string(name)
            field.blob(metadata)
            field.tags()
        field.tags()
    return {CLASSIC_MEMBER_TAG: field.done()}


def _classic(tag: bytes | None) -> ClassicMember | None:
    if tag is None:
        return UNTAGGED
    field = Reader.of_field(tag)
    if field.int8() == 0:
        return None
    session_timeout_ms = field.int32()
    protocols = []
    for _ in range(field.array()):
        protocols.append((field.string(), field.blob()))
        field.tags()
    return ClassicMember(session_timeout_ms, tuple(protocols))


# The target assignment


def _target_epoch_value(record: TargetEpochSaved) -> bytes:
    value = _writer()
    value.int32(record.epoch)
    value.tags(_int64_tag(ASSIGNED_MS_TAG, record.assigned_ms))
    return value.done()


def _target_epoch(key: Reader, value: Reader | None) -> Record:
    group_id = key.string()
    if value is None:
        return TargetEpochForgotten(group_id)
    epoch = value.int32()
    return TargetEpochSaved(group_id, epoch, _tagged_int64(value.tags(), ASSIGNED_MS_TAG))


def _target_assignment_value(record: TargetAssignmentSaved) -> bytes:
    value = _writer()
    value.array(len(record.partitions))
    for topic_id, partitions in record.partitions.items():
        value.fixed_bytes(topic_id.bytes)
        value.int32s(sorted(partitions))
        value.tags()
    value.tags()
    return value.done()


def _target_assignment(key: Reader, value: Reader | None) -> Record:
    group_id, member_id = key.string(), key.string()
    if value is None:
        return TargetAssignmentForgotten(group_id, member_id)
    partitions: dict[UUID, frozenset[int]] = {}
    for _ in range(value.array()):
        topic_id = UUID(bytes=value.fixed_bytes(16))
        partitions[topic_id] = frozenset(value.int32s())
        value.tags()
    value.tags()
    return TargetAssignmentSaved(group_id, member_id, partitions)


# The current assignment


def _current_assignment_value(record: CurrentAssignmentSaved) -> bytes:
    value = _writer()
    value.int32(record.epoch)
    value.int32(record.previous_epoch)
    value.int8(record.state)
    _write_partition_epochs(value, record.assigned)
    _write_partition_epochs(value, record.revoking)
    value.tags()
    return value.done()


def _write_partition_epochs(value: Writer, topics: PartitionEpochs) -> None:
    value.array(len(topics))
    for topic_id, epochs in topics.items():
        partitions = sorted(epochs)
        value.fixed_bytes(topic_id.bytes)
        value.int32s(partitions)
        field = Writer.of_field()
        field.int32s([epochs[partition] for partition in partitions])
        value.tags({EPOCHS_TAG: field.done()} if partitions else {})


def _current_assignment(key: Reader, value: Reader | None) -> Record:
    group_id, member_id = key.string(), key.string()
    if value is None:
        return CurrentAssignmentForgotten(group_id, member_id)
    epoch, previous_epoch, state = value.fixed(">iib")
    assigned, revoking = _partition_epochs(value, epoch), _partition_epochs(value, epoch)
    value.tags()
    return CurrentAssignmentSaved(
        group_id=group_id,
        member_id=member_id,
        epoch=epoch,
        previous_epoch=previous_epoch,
        state=MemberState(state),
        assigned=assigned,
        revoking=revoking,
    )


def _partition_epochs(value: Reader, member_epoch: int) -> PartitionEpochs:
    """Read partitions with the member epochs at which they were assigned.

    Where the log doesn't say, a partition counts as assigned at the member's own epoch, or at 0 if
    the member is a static one that is away (-2).
    """
    topics: dict[UUID, dict[int, int]] = {}
    for _ in range(value.array()):
        topic_id = UUID(bytes=value.fixed_bytes(16))
        partitions = value.int32s()
        tag = value.tags().get(EPOCHS_TAG)
        epochs = () if tag is None else Reader.of_field(tag).int32s()
        if len(epochs) != len(partitions):
            epochs = (max(0, member_epoch),) * len(partitions)
        topics[topic_id] = dict(zip(partitions, epochs, strict=True))
    return topics


# Regular expressions


def _regex_value(record: RegexResolved) -> bytes:
    value = _writer()
    value.strings(record.topics)
    value.fixed(">qq", record.version, record.resolved_ms)
    value.tags()
    return value.done()


def _regex(key: Reader, value: Reader | None) -> Record:
    group_id, regex = key.string(), key.string()
    if value is None:
        return RegexForgotten(group_id, regex)
    topics = value.strings()
    version, resolved_ms = value.fixed(">qq")
    value.tags()
    return RegexResolved(group_id, regex, topics, version, resolved_ms)


DECODERS: Mapping[int, Callable[[Reader, Reader | None], Record]] = {
    GROUP_KEY: _group,
    SUBSCRIPTION_METADATA_KEY: _subscription_metadata,
    MEMBER_KEY: _member,
    TARGET_EPOCH_KEY: _target_epoch,
    TARGET_ASSIGNMENT_KEY: _target_assignment,
    CURRENT_ASSIGNMENT_KEY: _current_assignment,
    REGEX_KEY: _regex,
}


def _int64_tag(tag: int, value: int) -> dict[int, bytes]:
    """Return a tagged int64 field, which is left out at its default, 0."""
    return {tag: value.to_bytes(8, "big", signed=True)} if value else {}


def _tagged_int64(tags: Mapping[int, bytes], tag: int) -> int:
    return int.from_bytes(tags.get(tag, b""), "big", signed=True)
