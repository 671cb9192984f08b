"""Upgrade a classic group of consumers to a consumer group, as a consumer joins it.

Its generation becomes epoch of group, target and members. What the leader assigned last becomes the
target and what each member has, so that nothing moves by the conversion itself: the newcomer's
heartbeat, decided upon the outcome, brings the next epoch, and with it classic members are told to
join again. A static member that takes its own place brings one where something is nobody's, which
on Kafka 4.3 stays so. The tombstone of the classic group, the records here and those of that
heartbeat are one batch.
Source: validateOnlineUpgrade and convertToConsumerGroup of GroupMetadataManager, fromClassicGroup
of ConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE
from coordinator.errors import Code, Refused
from coordinator.groups.classic.state import ClassicGroup
from coordinator.groups.classic.state import ClassicGroupMember as ClassicGroupMember
from coordinator.groups.consumer.apply import apply_record
from coordinator.groups.consumer.record_types import (
    ClassicMemberMetadata,
    ConsumerGroupSaved,
    Record,
    TargetAssignmentSaved,
    TargetEpochSaved,
    TopicPartitions,
)
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupMember
from coordinator.groups.consumer.topics import NO_HASH, TopicList, compute_metadata_hash
from coordinator.groups.migration.embedded_protocol import (
    decode_member_assignment,
    decode_member_subscription,
)
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.shard.decision import LogRecordOrigin


def check_upgrade(group: ClassicGroup, policy: MigrationPolicy) -> None:
    """Raise Refused if the policy, or the group itself, forbids the upgrade.

    Raises Refused: GROUP_ID_NOT_FOUND, as in Kafka.
    """
    if not policy.allows_upgrade:
        raise _create_refusal(group, "online upgrade is disabled.")
    if group.protocol_type != PROTOCOL_TYPE:
        raise _create_refusal(group, "the group does not use the consumer embedded protocol.")
    if len(group.members) > policy.consumer_max_size:
        raise _create_refusal(group, "the group size exceeds the consumer group maximum size.")


def build_consumer_group_records(group: ClassicGroup, topics: TopicList) -> list[Record]:
    """Return the records of the consumer group that a classic group becomes.

    The classic group's own tombstone is the caller's.

    Raises Refused: GROUP_ID_NOT_FOUND if something can't be decoded, or would be lost;
    UNKNOWN_SERVER_ERROR if a partition has two owners.
    """
    members = [convert_classic_member(group, member, topics) for member in group.members.values()]
    _check_owners(members)
    group_id, epoch = group.group_id, group.generation
    names = {topic for member in members for topic in member.topics}
    records: list[Record] = [member.to_member_record(group_id) for member in members]
    topics_hash = (
        compute_metadata_hash(names, topics)
        if _is_all_assigned(members, names, topics)
        else NO_HASH
    )
    records.append(ConsumerGroupSaved(group_id, epoch, topics_hash))
    for member in members:
        target: TopicPartitions = {
            topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()
        }
        records.append(TargetAssignmentSaved(group_id, member.member_id, target))
    records.append(TargetEpochSaved(group_id, epoch))
    records += [member.to_assignment_record(group_id) for member in members]
    return records


def create_group_from_records(group_id: str, records: list[Record]) -> ConsumerGroup:
    """Return the consumer group that these records make."""
    groups = {group_id: ConsumerGroup(group_id)}
    for record in records:
        apply_record(groups, record, LogRecordOrigin(-1))
    return groups[group_id]


def convert_classic_member(
    group: ClassicGroup, member: ClassicGroupMember, topics: TopicList
) -> ConsumerGroupMember:
    """Return the consumer group's member that a classic member becomes.

    Raises Refused: GROUP_ID_NOT_FOUND.
    """
    try:
        assigned, user_data = decode_member_assignment(member.assignment, topics)
        subscription = decode_member_subscription(_metadata_of(group, member), topics)
    except ValueError as error:
        malformed = "the embedded consumer protocol is malformed."
        raise _create_refusal(group, malformed) from error
    if user_data:
        raise _create_refusal(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade.",
        )
    return ConsumerGroupMember(
        member_id=member.member_id,
        epoch=group.generation,
        previous_epoch=group.generation,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=subscription.topics,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        assigned={
            topic_id: dict.fromkeys(sorted(indexes), group.generation)
            for topic_id, indexes in assigned.items()
        },
        classic=ClassicMemberMetadata(member.session_timeout_ms, member.protocols),
    )


def _metadata_of(group: ClassicGroup, member: ClassicGroupMember) -> bytes:
    """Return a member's metadata for the group's protocol, or else for its first protocol.

    While the group rebalances for the first time it has no protocol, and a member that has just
    changed may not offer it. All its metadata say the same topics.
    """
    return member.metadata_of(group.protocol) or member.protocols[0][1]


def _is_all_assigned(
    members: list[ConsumerGroupMember], names: Iterable[str], topics: TopicList
) -> bool:
    """Return whether the leader's assignment has all partitions of the subscribed topics.

    It has not when it isn't there yet, or is older than some of the partitions. Then there is no
    leader to bring it up to date any more, and a static member that changes its protocol brings no
    epoch by itself: the group needs one.
    """
    return all(
        sum(len(member.assigned.get(topic.id, ())) for member in members) == len(topic.partitions)
        for topic in map(topics.get, names)
        if topic is not None
    )


def _check_owners(members: list[ConsumerGroupMember]) -> None:
    """Raise Refused (UNKNOWN_SERVER_ERROR) if a partition is assigned to two members."""
    owned = set()
    for member in members:
        for topic_id, epochs in member.assigned.items():
            for partition in epochs:
                if (topic_id, partition) in owned:
                    raise Refused(
                        Code.UNKNOWN_SERVER_ERROR, f"{topic_id}-{partition} has two owners"
                    )
                owned.add((topic_id, partition))


def _create_refusal(group: ClassicGroup, reason: str) -> Refused:
    return Refused(
        Code.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}",
    )
