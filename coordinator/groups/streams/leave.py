"""Decide that a member leaves, for good or to come back, or is fenced."""

from __future__ import annotations

from dataclasses import replace

from coordinator.groups.streams.deletion import build_streams_member_tombstones
from coordinator.groups.streams.effects import (
    CountStreamsEpoch,
    CountStreamsSettled,
    DropStreamsMember,
)
from coordinator.groups.streams.epoch_cause import StreamsEpochCause
from coordinator.groups.streams.record_types import Record, StreamsTargetEpochSaved
from coordinator.groups.streams.state import AWAY_EPOCH, StreamsGroup, StreamsGroupMember
from coordinator.groups.streams.tasks import NOTHING_ASSIGNED
from coordinator.shard.decision import Decision


def leave_streams_group_for_now(
    group: StreamsGroup, member: StreamsGroupMember
) -> Decision[Record, None]:
    """Decide that a static member leaves to come back; it keeps its tasks.

    What the member that comes back commits counts from the beginning, hence assignment epoch 0.
    """
    assigned = replace(member.assigned, active=dict.fromkeys(member.assigned.active, 0))
    away = replace(member, epoch=AWAY_EPOCH, assigned=assigned, revoking=NOTHING_ASSIGNED)
    return Decision([away.to_assignment_record(group.group_id)], None)


def fence_streams_member(
    group: StreamsGroup, member: StreamsGroupMember, cause: StreamsEpochCause
) -> Decision[Record, None]:
    """Decide that a member is removed from its group, as it has left or been silent.

    A group that has no members then has its target assignment, which is empty, at that epoch.
    """
    group_id, epoch = group.group_id, group.epoch + 1
    records: list[Record] = [
        *build_streams_member_tombstones(group_id, member.member_id),
        group.to_group_record(epoch),
    ]
    if len(group.members) == 1:
        records.append(StreamsTargetEpochSaved(group_id, epoch))
    return Decision(
        records,
        None,
        (
            DropStreamsMember(member.member_id),
            CountStreamsEpoch(cause, member.member_id),
            CountStreamsSettled(),
        ),
    )
