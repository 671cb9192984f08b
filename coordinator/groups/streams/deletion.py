"""Build the tombstones that end a streams group."""

from __future__ import annotations

from coordinator.groups.streams.record_types import (
    Record,
    StreamsCurrentAssignmentForgotten,
    StreamsGroupForgotten,
    StreamsMemberForgotten,
    StreamsTargetAssignmentForgotten,
    StreamsTargetEpochForgotten,
    StreamsTopologyForgotten,
)
from coordinator.groups.streams.state import StreamsGroup


def build_streams_group_tombstones(group: StreamsGroup) -> list[Record]:
    """Return the tombstones of all records of a streams group, in the order that Kafka needs.

    The group is deleted, or makes way for a classic one.
    """
    group_id = group.group_id
    return [
        *(StreamsCurrentAssignmentForgotten(group_id, each) for each in group.members),
        *(StreamsTargetAssignmentForgotten(group_id, each) for each in group.members),
        StreamsTargetEpochForgotten(group_id),
        *(StreamsMemberForgotten(group_id, each) for each in group.members),
        StreamsGroupForgotten(group_id),
        StreamsTopologyForgotten(group_id),
    ]


def build_streams_member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones that end a member, in the order that Kafka needs."""
    return [
        StreamsCurrentAssignmentForgotten(group_id, member_id),
        StreamsTargetAssignmentForgotten(group_id, member_id),
        StreamsMemberForgotten(group_id, member_id),
    ]
