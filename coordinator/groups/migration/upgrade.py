"""Upgrade: a consumer joins a classic group of consumers, which becomes a consumer group.

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
from coordinator.groups.classic.state import Group
from coordinator.groups.classic.state import Member as ClassicGroupMember
from coordinator.groups.consumer.apply import apply
from coordinator.groups.consumer.facts import (
    ClassicMember,
    ConsumerGroupSaved,
    Record,
    TargetAssignmentSaved,
    TargetEpochSaved,
    TopicPartitions,
)
from coordinator.groups.consumer.state import ConsumerGroup, Member
from coordinator.groups.consumer.topics import NO_HASH, TopicList, metadata_hash
from coordinator.groups.migration.embedded import (
    read_assignment,
    read_subscription,
)
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.shard.decision import Origin


def check_upgrade(group: Group, policy: MigrationPolicy) -> None:
    """Refuses with 69 a group that is not to be converted."""
    if not policy.upgrade:
        raise _refused(group, "online upgrade is disabled.")
    if group.protocol_type != PROTOCOL_TYPE:
        raise _refused(group, "the group does not use the consumer embedded protocol.")
    if len(group.members) > policy.consumer_max_size:
        raise _refused(group, "the group size exceeds the consumer group maximum size.")


def upgrade(group: Group, topics: TopicList) -> list[Record]:
    """All that the log is to say of it from now on; the classic group's own tombstone is the
    caller's. Refuses with 69 what can't be read, or would be lost; with -1 two owners of one
    partition."""
    members = [_converted(group, member, topics) for member in group.members.values()]
    _check_owners(members)
    group_id, epoch = group.group_id, group.generation
    names = {topic for member in members for topic in member.topics}
    records: list[Record] = [member.saved(group_id) for member in members]
    known = metadata_hash(names, topics) if _is_all_assigned(members, names, topics) else NO_HASH
    records.append(ConsumerGroupSaved(group_id, epoch, known))
    for member in members:
        target: TopicPartitions = {
            topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()
        }
        records.append(TargetAssignmentSaved(group_id, member.member_id, target))
    records.append(TargetEpochSaved(group_id, epoch))
    records += [member.assignment_saved(group_id) for member in members]
    return records


def outcome(group_id: str, records: list[Record]) -> ConsumerGroup:
    """The group that these records make."""
    made = {group_id: ConsumerGroup(group_id)}
    for record in records:
        apply(made, record, Origin(-1))
    return made[group_id]


def _converted(group: Group, member: ClassicGroupMember, topics: TopicList) -> Member:
    try:
        has, user_data = read_assignment(member.assignment, topics)
        said = read_subscription(_metadata(group, member), topics)
    except ValueError as error:
        malformed = "the embedded consumer protocol is malformed."
        raise _refused(group, malformed) from error
    if user_data:
        raise _refused(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade.",
        )
    return Member(
        member_id=member.member_id,
        epoch=group.generation,
        previous_epoch=group.generation,
        instance_id=member.instance_id,
        rack_id=said.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=said.topics,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        assigned={
            topic_id: dict.fromkeys(sorted(indexes), group.generation)
            for topic_id, indexes in has.items()
        },
        classic=ClassicMember(member.session_timeout_ms, member.protocols),
    )


def _metadata(group: Group, member: ClassicGroupMember) -> bytes:
    """Of the group's protocol. While it rebalances for the first time there is none, and a member
    that has just changed may not offer it: then its first. They all say the same topics."""
    return member.metadata(group.protocol) or member.protocols[0][1]


def _is_all_assigned(members: list[Member], names: Iterable[str], topics: TopicList) -> bool:
    """Whether the leader has left nothing out, as it does when its assignment isn't there yet, or
    is older than some of the partitions. Then there is none to bring it up to date any more, and a
    static member that changes its protocol brings no epoch by itself: the group needs one."""
    return all(
        sum(len(member.assigned.get(topic.id, ())) for member in members) == len(topic.partitions)
        for topic in map(topics.get, names)
        if topic is not None
    )


def _check_owners(members: list[Member]) -> None:
    owned = set()
    for member in members:
        for topic_id, epochs in member.assigned.items():
            for partition in epochs:
                if (topic_id, partition) in owned:
                    raise Refused(
                        Code.UNKNOWN_SERVER_ERROR, f"{topic_id}-{partition} has two owners"
                    )
                owned.add((topic_id, partition))


def _refused(group: Group, why: str) -> Refused:
    return Refused(
        Code.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {why}",
    )
