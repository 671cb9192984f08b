"""Decide conversions of groups: the records of both kinds, and the effects that follow them.

A classic group has join state beside its record, with members that wait for an answer, and timers;
a consumer group is its records, and timers. The tombstones of the one kind and the records of the
other, in this order, are one batch with whatever else is decided; the effects make or drop what is
not in the log.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase, GroupForgotten
from coordinator.groups.consumer.deletion import build_consumer_group_tombstones
from coordinator.groups.consumer.effects import (
    AdoptClassicGroup,
    DropClassicGroup,
    DropConsumerGroup,
)
from coordinator.groups.consumer.epoch_cause import GroupEpochCause
from coordinator.groups.consumer.leave import fence_members
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupMember
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.migration.downgrade import convert_to_classic_group, should_downgrade
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.groups.migration.upgrade import (
    build_consumer_group_records,
    check_upgrade,
    create_group_from_records,
)
from coordinator.groups.state import Record
from coordinator.shard.decision import Decision


def upgrade_group(
    group: ClassicGroup, policy: MigrationPolicy, topics: TopicList
) -> Decision[Record, ConsumerGroup]:
    """Decide that a classic group becomes a consumer group; respond with that group.

    Its records and effects come before those of the heartbeat that asks for it. An empty group
    makes way for an empty one.

    Raises Refused: GROUP_ID_NOT_FOUND and UNKNOWN_SERVER_ERROR (see `migration.upgrade`).
    """
    group_id = group.group_id
    effects = (DropClassicGroup(group),)
    if group.phase is ClassicGroupPhase.EMPTY:
        return Decision([GroupForgotten(group_id)], ConsumerGroup(group_id), effects)
    check_upgrade(group, policy)
    records = build_consumer_group_records(group, topics)
    upgraded_group = create_group_from_records(group_id, records)
    return Decision([GroupForgotten(group_id), *records], upgraded_group, effects)


def downgrade_group(
    group: ConsumerGroup,
    leaving_members: Collection[ConsumerGroupMember],
    joining_members: Mapping[str, ConsumerGroupMember],
    topics: TopicList,
    now_ms: int,
    *,
    must_rebalance: bool = True,
) -> Decision[Record, None]:
    """Decide that a consumer group becomes a classic one as its last consumers leave.

    `joining_members`: by the id of the member whose place, and target assignment, each takes.
    `must_rebalance`: the members of the classic group are told to join again.
    """
    classic_group = convert_to_classic_group(
        group, leaving_members, joining_members, topics, now_ms
    )
    return Decision(
        [*build_consumer_group_tombstones(group), classic_group.to_record()],
        None,
        (DropConsumerGroup(tuple(group.members)), AdoptClassicGroup(classic_group, must_rebalance)),
    )


def fence_or_downgrade(
    group: ConsumerGroup,
    members: Collection[ConsumerGroupMember],
    cause: GroupEpochCause,
    policy: MigrationPolicy,
    topics: TopicList,
    now_ms: int,
) -> Decision[Record, None]:
    """Decide that members are removed; convert the group if only classic members are left."""
    if should_downgrade(group, members, 0, policy):
        return downgrade_group(group, members, {}, topics, now_ms)
    return fence_members(group, members, cause, topics)
