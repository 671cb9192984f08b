"""Build the tombstones that end a consumer group."""

from __future__ import annotations

from coordinator.groups.consumer.record_types import (
    ConsumerGroupForgotten,
    ConsumerMemberForgotten,
    CurrentAssignmentForgotten,
    Record,
    RegexForgotten,
    SubscriptionMetadataForgotten,
    TargetAssignmentForgotten,
    TargetEpochForgotten,
)
from coordinator.groups.consumer.state import ConsumerGroup


def build_consumer_group_tombstones(group: ConsumerGroup) -> list[Record]:
    """Return the tombstones of all records of a consumer group, in the order that Kafka needs.

    The group is deleted, or makes way for a classic one.
    """
    group_id = group.group_id
    return [
        *(CurrentAssignmentForgotten(group_id, member_id) for member_id in group.members),
        *(TargetAssignmentForgotten(group_id, member_id) for member_id in group.members),
        TargetEpochForgotten(group_id),
        *(ConsumerMemberForgotten(group_id, member_id) for member_id in group.members),
        *(RegexForgotten(group_id, regex) for regex in group.resolved_regexes),
        SubscriptionMetadataForgotten(group_id),
        ConsumerGroupForgotten(group_id),
    ]
