"""Derive from a classic group's members which of its offsets may be deleted or expire.

The topics that a group of consumers is subscribed to are in the metadata of its members, which the
broker otherwise only hands on. Groups of other types (Kafka Connect) don't say what they read, or
when it may go.
Source: org.apache.kafka.coordinator.group.classic.ClassicGroup.
"""

from __future__ import annotations

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE, decode_topics
from coordinator.groups.classic.state import ClassicGroup, ClassicGroupPhase
from coordinator.offsets.policy import SIMPLE_GROUP_POLICY, GroupOffsetPolicy


def derive_offset_deletion_policy(group: ClassicGroup) -> GroupOffsetPolicy:
    """Return which offsets of a classic group may be deleted or expire."""
    if group.protocol_type is None:
        return SIMPLE_GROUP_POLICY
    is_empty = group.phase is ClassicGroupPhase.EMPTY
    is_of_consumers = group.protocol_type == PROTOCOL_TYPE
    topics = decode_subscribed_topics(group) if is_of_consumers else None
    return GroupOffsetPolicy(
        is_empty=is_empty,
        allows_deletion=is_empty or is_of_consumers,
        allows_expiry=is_empty or (topics is not None and group.phase is ClassicGroupPhase.STABLE),
        empty_since_ms=group.phase_started_at_ms
        if is_empty and group.phase_started_at_ms >= 0
        else None,
        is_subscribed=(lambda _: is_of_consumers) if topics is None else topics.__contains__,
    )


def decode_subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """Return the topics that the members of the current generation are subscribed to.

    An empty group that had a generation has none. None: there has been no generation yet, or a
    member's subscription can't be decoded.
    """
    if group.protocol is None:
        return frozenset() if group.generation > 0 else None
    topics: set[str] = set()
    try:
        for member in group.members.values():
            topics.update(decode_topics(member.metadata_of(group.protocol)))
    except ValueError:
        return None
    return frozenset(topics)
