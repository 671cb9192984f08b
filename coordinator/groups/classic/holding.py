"""Derive from a classic group's members which of its offsets may be deleted or expire.

The topics that a group of consumers is subscribed to are in the metadata of its members, which the
broker otherwise only hands on. Groups of other types (Kafka Connect) don't say what they read, or
when it may go.
Source: org.apache.kafka.coordinator.group.classic.ClassicGroup.
"""

from __future__ import annotations

from coordinator.assignors.consumer_protocol import PROTOCOL_TYPE, decode_topics
from coordinator.groups.classic.state import Group, Phase
from coordinator.offsets.holding import SIMPLE, Holding


def holding_of(group: Group) -> Holding:
    """Return which offsets of a classic group may be deleted or expire."""
    if group.protocol_type is None:
        return SIMPLE
    is_empty = group.phase is Phase.EMPTY
    is_of_consumers = group.protocol_type == PROTOCOL_TYPE
    topics = subscribed_topics(group) if is_of_consumers else None
    return Holding(
        is_empty=is_empty,
        lets_delete=is_empty or is_of_consumers,
        expires=is_empty or (topics is not None and group.phase is Phase.STABLE),
        since_ms=group.phase_ms if is_empty and group.phase_ms >= 0 else None,
        is_subscribed=(lambda _: is_of_consumers) if topics is None else topics.__contains__,
    )


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """Return the topics that the members of the current generation are subscribed to.

    An empty group that had a generation has none. None: there has been no generation yet, or a
    member's subscription can't be decoded.
    """
    if group.protocol is None:
        return frozenset() if group.generation > 0 else None
    topics: set[str] = set()
    try:
        for member in group.members.values():
            topics.update(decode_topics(member.metadata(group.protocol)))
    except ValueError:
        return None
    return frozenset(topics)
