"""Apply the records of streams groups: the one place that changes a StreamsGroup.

A log that is loaded may have been compacted, so that in the middle of it a task is given to a
member while the record that took it from another is gone: the later record holds. Live, that would
be two owners of an active task, and stops the broker.
"""

from __future__ import annotations

from dataclasses import replace

from coordinator.groups.streams.record_types import (
    NO_EPOCH,
    Record,
    StreamsCurrentAssignmentForgotten,
    StreamsCurrentAssignmentSaved,
    StreamsGroupForgotten,
    StreamsGroupSaved,
    StreamsMemberForgotten,
    StreamsMemberSaved,
    StreamsTargetAssignmentForgotten,
    StreamsTargetAssignmentSaved,
    StreamsTargetEpochForgotten,
    StreamsTargetEpochSaved,
    StreamsTopologyForgotten,
    StreamsTopologySaved,
)
from coordinator.groups.streams.state import LEFT_EPOCH, StreamsGroup, StreamsGroupMember
from coordinator.groups.streams.tasks import NOTHING_ASSIGNED, TaskId
from coordinator.shard.decision import LogRecordOrigin

TOMBSTONES = (
    StreamsGroupForgotten,
    StreamsTopologyForgotten,
    StreamsMemberForgotten,
    StreamsTargetEpochForgotten,
    StreamsTargetAssignmentForgotten,
    StreamsCurrentAssignmentForgotten,
)


def apply_record(groups: dict[str, StreamsGroup], record: Record, origin: LogRecordOrigin) -> None:
    """Change the streams groups of a shard as a record says.

    A tombstone of a group that doesn't exist changes nothing.
    """
    group = groups.get(record.group_id)
    if group is None:
        if isinstance(record, TOMBSTONES):
            return
        group = groups[record.group_id] = StreamsGroup(record.group_id)
    match record:
        case StreamsGroupForgotten():
            if group.members and not origin.replaying:
                raise AssertionError(f"{group.group_id} ends with {len(group.members)} members")
            del groups[group.group_id]
        case StreamsMemberSaved():
            _apply_member_metadata(group, record)
        case StreamsMemberForgotten():
            _remove_member(group, record.member_id)
        case StreamsCurrentAssignmentSaved():
            _apply_current_assignment(group, record, origin)
        case StreamsCurrentAssignmentForgotten():
            _clear_current_assignment(group, record.member_id)
        case StreamsTargetAssignmentSaved():
            group.target_assignment[record.member_id] = record.tasks
        case StreamsTargetAssignmentForgotten():
            group.target_assignment.pop(record.member_id, None)
        case _:
            _apply_group_record(group, record)


def _apply_group_record(group: StreamsGroup, record: Record) -> None:
    """Apply a record that is about the group as a whole."""
    match record:
        case StreamsGroupSaved():
            group.epoch, group.metadata_hash = record.epoch, record.metadata_hash
            group.validated_topology_epoch = record.validated_topology_epoch
            group.assignment_configs = record.assignment_configs
            group.stored_description_epoch = record.stored_description_epoch
            group.failed_description_epoch = record.failed_description_epoch
        case StreamsTopologySaved():
            group.topology = record.topology
        case StreamsTopologyForgotten():
            group.topology = None
        case StreamsTargetEpochSaved():
            group.target_epoch, group.assigned_at_ms = record.epoch, record.assigned_at_ms
        case StreamsTargetEpochForgotten():
            group.target_epoch, group.assigned_at_ms = NO_EPOCH, 0


# Members


def _apply_member_metadata(group: StreamsGroup, record: StreamsMemberSaved) -> None:
    """Store what a member said of itself, and keep the group's index of instances in step."""
    old_member = group.members.get(record.member_id)
    if old_member is not None:
        _remove_static_member(group, old_member)
    member = replace(
        old_member or StreamsGroupMember(record.member_id),
        instance_id=record.instance_id,
        rack_id=record.rack_id,
        client_id=record.client_id,
        client_host=record.client_host,
        rebalance_timeout_ms=record.rebalance_timeout_ms,
        topology_epoch=record.topology_epoch,
        process_id=record.process_id,
        endpoint=record.endpoint,
        client_tags=record.client_tags,
    )
    group.members[member.member_id] = member
    if member.instance_id is not None:
        group.static_members[member.instance_id] = member.member_id


def _remove_member(group: StreamsGroup, member_id: str) -> None:
    member = group.members.pop(member_id, None)
    if member is not None:
        _release_tasks(group, member)
        _remove_static_member(group, member)


def _remove_static_member(group: StreamsGroup, member: StreamsGroupMember) -> None:
    """Remove a static member's instance id, unless another member has it by now."""
    instance_id = member.instance_id
    if instance_id is not None and group.static_members.get(instance_id) == member.member_id:
        del group.static_members[instance_id]


# Current assignments


def _apply_current_assignment(
    group: StreamsGroup, record: StreamsCurrentAssignmentSaved, origin: LogRecordOrigin
) -> None:
    """Store a member's current assignment, and make it the owner of those tasks."""
    old_member = group.members.get(record.member_id) or StreamsGroupMember(record.member_id)
    member = replace(
        old_member,
        epoch=record.epoch,
        previous_epoch=record.previous_epoch,
        state=record.state,
        assigned=record.assigned,
        revoking=record.revoking,
    )
    _release_tasks(group, old_member)
    for tasks in (member.assigned, member.revoking):
        for task in tasks.active:
            _set_active_owner(group, task, member.member_id, origin)
        for task in tasks.standby:
            group.standby_holders.setdefault(task, set()).add(member.member_id)
        for task in tasks.warmup:
            group.warmup_holders.setdefault(task, set()).add(member.member_id)
    group.members[member.member_id] = member


def _clear_current_assignment(group: StreamsGroup, member_id: str) -> None:
    member = group.members.get(member_id)
    if member is None:
        return
    _release_tasks(group, member)
    group.members[member_id] = replace(
        member,
        epoch=LEFT_EPOCH,
        previous_epoch=LEFT_EPOCH,
        assigned=NOTHING_ASSIGNED,
        revoking=NOTHING_ASSIGNED,
    )


def _set_active_owner(
    group: StreamsGroup, task: TaskId, member_id: str, origin: LogRecordOrigin
) -> None:
    """Make a member the owner of an active task that nobody else has.

    Raises AssertionError if another member has it, unless the log is being loaded.
    """
    owner = group.active_owners.setdefault(task, member_id)
    if owner == member_id:
        return
    if not origin.replaying:
        raise AssertionError(
            f"{group.group_id}: task {task[0]}_{task[1]} is given to {member_id}, "
            f"and {owner} has it"
        )
    group.active_owners[task] = member_id


def _release_tasks(group: StreamsGroup, member: StreamsGroupMember) -> None:
    """Remove a member as the owner of its tasks, where it still is."""
    for tasks in (member.assigned, member.revoking):
        for task in tasks.active:
            if group.active_owners.get(task) == member.member_id:
                del group.active_owners[task]
        for role, holders in (
            (tasks.standby, group.standby_holders),
            (tasks.warmup, group.warmup_holders),
        ):
            for task in role:
                member_ids = holders.get(task)
                if member_ids is not None:
                    member_ids.discard(member.member_id)
                    if not member_ids:
                        del holders[task]
