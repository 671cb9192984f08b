"""Downgrade: the last member that speaks the consumer protocol goes, and a classic group is left.

It goes by leaving, by falling silent, or as a static member that comes back with the classic
protocol. The group's epoch becomes the generation, the target assignment what the classic members
are assigned, so that who knows nothing of it yet can go on until it is told to join again. The
tombstones of the consumer group and the record of the classic one are one batch.
Source: validateOnlineDowngrade… and convertToClassicGroup of GroupMetadataManager,
fromConsumerGroup of ClassicGroup.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE
from coordinator.groups.classic.state import Group, Phase
from coordinator.groups.classic.state import Member as ClassicGroupMember
from coordinator.groups.consumer.state import ConsumerGroup, Member
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.embedded import write_assignment
from coordinator.groups.migration.policy import MigrationPolicy


def is_to_downgrade(
    group: ConsumerGroup, going: Collection[Member], coming: int, policy: MigrationPolicy
) -> bool:
    """Whether only classic members are left, once some go and so many classic ones come."""
    left = len(group.members) - len(going)
    classic = group.classic_members - sum(member.classic is not None for member in going)
    return policy.downgrade and classic == left and 0 < left + coming <= policy.classic_max_size


def downgrade(
    group: ConsumerGroup,
    going: Collection[Member],
    coming: Mapping[str, Member],
    topics: TopicList,
    now_ms: int,
) -> Group:
    """The classic group, Stable. `coming`: by the id of the member whose place, and share of the
    target, it takes."""
    gone = {member.member_id for member in going}
    left = [(member_id, member) for member_id, member in group.members.items()]
    members = {
        member.member_id: (member, share)
        for share, member in [*left, *coming.items()]
        if member.member_id not in gone
    }
    made = Group(
        group_id=group.group_id,
        phase=Phase.STABLE,
        came_from=Phase.STABLE,
        phase_ms=now_ms,
        generation=group.epoch,
        protocol_type=PROTOCOL_TYPE,
        leader=next(iter(members)),
    )
    for member_id, (member, _) in members.items():
        made.members[member_id] = _converted(member)
    made.protocol = made.select_protocol()
    for member_id, (_, share) in members.items():
        known = made.members[member_id]
        assignment = write_assignment(
            group.target_of(share, None), topics, known.metadata(made.protocol)
        )
        made.members[member_id] = replace(known, assignment=assignment)
    return made


def _converted(member: Member) -> ClassicGroupMember:
    """Without its assignment, which is written in the version of the protocol that is chosen."""
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
