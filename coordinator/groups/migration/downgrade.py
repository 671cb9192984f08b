"""Downgrade a consumer group to a classic one when only classic members are left.

The last member that speaks the consumer protocol goes by leaving, by falling silent, or as a static
member that comes back with the classic protocol. The group's epoch becomes the generation, the
target assignment what the classic members are assigned, so that who knows nothing of it yet can go
on until it is told to join again. The tombstones of the consumer group and the record of the
classic one are one batch.
Source: validateOnlineDowngrade… and convertToClassicGroup of GroupMetadataManager,
fromConsumerGroup of ClassicGroup.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase
from coordinator.groups.classic.state import ClassicGroupMember as ClassicGroupMember
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupMember
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.embedded_protocol import encode_member_assignment
from coordinator.groups.migration.policy import MigrationPolicy


def should_downgrade(
    group: ConsumerGroup,
    leaving_members: Collection[ConsumerGroupMember],
    joining_count: int,
    policy: MigrationPolicy,
) -> bool:
    """Return whether a group may become classic, as only classic members are left after a change.

    The change: `leaving_members` leave and `joining_count` classic members join.
    """
    remaining_count = len(group.members) - len(leaving_members)
    remaining_classic_count = group.classic_member_count - sum(
        member.classic is not None for member in leaving_members
    )
    return (
        policy.allows_downgrade
        and remaining_classic_count == remaining_count
        and 0 < remaining_count + joining_count <= policy.classic_max_size
    )


def convert_to_classic_group(
    group: ConsumerGroup,
    leaving_members: Collection[ConsumerGroupMember],
    joining_members: Mapping[str, ConsumerGroupMember],
    topics: TopicList,
    now_ms: int,
) -> ClassicGroup:
    """Return the classic group that a consumer group becomes; it is Stable.

    `joining_members`: by the id of the member whose place, and target assignment, each takes.
    """
    leaving_ids = {member.member_id for member in leaving_members}
    group_members = [(member_id, member) for member_id, member in group.members.items()]
    members = {
        member.member_id: (member, target_member_id)
        for target_member_id, member in [*group_members, *joining_members.items()]
        if member.member_id not in leaving_ids
    }
    classic_group = ClassicGroup(
        group_id=group.group_id,
        phase=ClassicGroupPhase.STABLE,
        previous_phase=ClassicGroupPhase.STABLE,
        phase_started_at_ms=now_ms,
        generation=group.epoch,
        protocol_type=PROTOCOL_TYPE,
        leader=next(iter(members)),
    )
    for member_id, (member, _) in members.items():
        classic_group.members[member_id] = _convert_member(member)
    classic_group.protocol = classic_group.select_protocol()
    for member_id, (_, target_member_id) in members.items():
        classic_member = classic_group.members[member_id]
        assignment = encode_member_assignment(
            group.target_assignment_of(target_member_id, None),
            topics,
            classic_member.metadata_of(classic_group.protocol),
        )
        classic_group.members[member_id] = replace(classic_member, assignment=assignment)
    return classic_group


def _convert_member(member: ConsumerGroupMember) -> ClassicGroupMember:
    """Return a classic member without its assignment.

    That is written in the version of the protocol that is chosen later.
    """
    assert member.classic is not None
    return ClassicGroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocols=member.classic.protocols,
    )
