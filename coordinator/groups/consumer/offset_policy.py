"""Derive from a consumer group's members which of its offsets may be deleted or expire.

Each ages from its commit, also while the group is empty: the log doesn't say since when it is.
Source: org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup.
"""

from __future__ import annotations

from coordinator.groups.consumer.state import ConsumerGroup
from coordinator.offsets.policy import GroupOffsetPolicy


def derive_offset_deletion_policy(group: ConsumerGroup) -> GroupOffsetPolicy:
    """Return which offsets of a consumer group may be deleted or expire."""
    return GroupOffsetPolicy(is_empty=not group.members, is_subscribed=group.is_subscribed_to)
