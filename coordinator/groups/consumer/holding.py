"""Derive what a consumer group says about its offsets (see `offsets.policy`).

Each ages from its commit, also while the group is empty: the log doesn't say since when it is.
Source: org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup.
"""

from __future__ import annotations

from coordinator.groups.consumer.state import ConsumerGroup
from coordinator.offsets.holding import Holding


def holding_of(group: ConsumerGroup) -> Holding:
    """Return what a consumer group says about its offsets."""
    return Holding(is_empty=not group.members, is_subscribed=group.is_subscribed_to)
