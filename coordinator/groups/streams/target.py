"""Compute the target assignment of a streams group with the broker's assignor.

It is computed at a heartbeat when the group's epoch is above the target's, or once the initial
delay of a new group has passed, but not more often than the assignment interval allows: in between
members go on with the target that there is. While the topology isn't ready, nobody is to have
anything.
Source: TargetAssignmentBuilder of Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator.assignors.java_order import sort_like_hash_map
from coordinator.assignors.streams.sticky import TaskGroup, TaskHolder, assign_tasks
from coordinator.groups.streams.configure import ConfiguredTopology
from coordinator.groups.streams.record_types import (
    Record,
    StreamsTargetAssignmentSaved,
    StreamsTargetEpochSaved,
)
from coordinator.groups.streams.state import StreamsGroup, StreamsGroupMember
from coordinator.groups.streams.tasks import NO_ROLES, TaskId, TaskRoles
from coordinator.shard.map_order import sort_like_timeline_map


def has_assignment_interval_passed(group: StreamsGroup, interval_ms: int, now_ms: int) -> bool:
    """Return whether the assignment interval has passed since the last target, or there is none."""
    return (
        not group.assigned_at_ms or not interval_ms or now_ms >= group.assigned_at_ms + interval_ms
    )


def compute_task_targets(
    group: StreamsGroup,
    members: Mapping[str, StreamsGroupMember],
    configured: ConfiguredTopology,
    standby_count: int,
    offsets: Mapping[str, Mapping[TaskId, int]],
) -> dict[str, TaskRoles]:
    """Return the tasks that each of these members is to have, in the order of Kafka's records.

    `offsets`: how far the state of members is, by member id, as they have reported it.
    """
    order = sort_like_hash_map(
        [
            *sort_like_timeline_map([each for each in group.members if each in members]),
            *(each for each in members if each not in group.members),
        ]
    )
    if not configured.is_ready or configured.subtopologies is None:
        return dict.fromkeys(order, NO_ROLES)
    holders = {
        member_id: TaskHolder(
            member.process_id,
            member.assigned.active,
            member.assigned.standby,
            offsets.get(member_id, {}),
        )
        for member_id in order
        for member in (members[member_id],)
    }
    groups = [
        TaskGroup(subtopology_id, each.task_count, bool(each.changelog_topics))
        for subtopology_id, each in sorted(configured.subtopologies.items())
    ]
    targets = assign_tasks(holders, groups, standby_count)
    return {
        member_id: TaskRoles(target.active, target.standby) for member_id, target in targets.items()
    }


def build_target_records(
    group: StreamsGroup,
    previous_targets: Mapping[str, TaskRoles],
    targets: Mapping[str, TaskRoles],
    epoch: int,
    now_ms: int,
) -> list[Record]:
    """Return the records of a new target assignment: its epoch, and members whose tasks differ."""
    records: list[Record] = [
        StreamsTargetAssignmentSaved(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if previous_targets.get(member_id) != target
    ]
    records.append(StreamsTargetEpochSaved(group.group_id, epoch, now_ms))
    return records


def count_moved_tasks(
    previous_targets: Mapping[str, TaskRoles], targets: Iterable[tuple[str, TaskRoles]]
) -> int:
    """Return how many active tasks a new target takes from members that were to have them."""
    return sum(
        len(previous_targets.get(member_id, NO_ROLES).active - target.active)
        for member_id, target in targets
    )
