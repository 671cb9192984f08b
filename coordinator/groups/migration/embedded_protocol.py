"""Decode and encode what classic consumers say in ConsumerProtocol's bytes, by topic id.

The classic protocol names topics, KIP-848's identifies them: what isn't a topic (any more) is left
out, either way. ValueError is raised for bytes that can't be decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from coordinator.assignors.consumer_protocol import (
    NEWEST_VERSION,
    UserData,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from coordinator.groups.consumer.record_types import TopicPartitions
from coordinator.groups.consumer.topics import TopicList
from coordinator.shard.record_fields import FieldReader


@dataclass(frozen=True, slots=True)
class ClassicSubscription:
    """Represents a classic member's subscription, with its owned partitions by topic id."""

    topics: frozenset[str]
    owned_partitions: Mapping[UUID, frozenset[int]]
    rack_id: str | None


def decode_member_subscription(metadata: bytes, topics: TopicList) -> ClassicSubscription:
    """Decode a member's subscription, with owned partitions of existing topics only."""
    subscription = decode_subscription(metadata)
    return ClassicSubscription(
        frozenset(subscription.topics),
        _group_by_topic_id(subscription.owned, topics),
        subscription.rack_id,
    )


def decode_member_assignment(data: bytes, topics: TopicList) -> tuple[TopicPartitions, UserData]:
    """Return the partitions of an assignment, and the user data of the assignor that made it.

    No bytes at all are no partitions: the member has joined, and never sent a SyncGroup.
    """
    if not data:
        return {}, b""
    partitions, user_data = decode_assignment(data)
    return _group_by_topic_id(partitions, topics), user_data or b""


def encode_member_assignment(
    partitions: Mapping[UUID, Iterable[int]], topics: TopicList, metadata: bytes
) -> bytes:
    """Encode an assignment in the protocol version of the member's metadata.

    That is at most the newest version known here. Metadata that can't be decoded, of a protocol
    that has never been the group's, count as version 0.
    """
    named_partitions = [
        (topic.name, partition)
        for topic_id, indexes in partitions.items()
        if (topic := topics.by_id(topic_id)) is not None
        for partition in sorted(indexes)
    ]
    version = FieldReader(metadata).read_int16() if len(metadata) > 1 else 0
    return encode_assignment(sorted(named_partitions), None, min(max(version, 0), NEWEST_VERSION))


def _group_by_topic_id(
    partitions: Iterable[tuple[str, int]], topics: TopicList
) -> dict[UUID, frozenset[int]]:
    partitions_by_name: dict[str, set[int]] = {}
    for name, partition in partitions:
        partitions_by_name.setdefault(name, set()).add(partition)
    return {
        topic.id: frozenset(indexes)
        for name, indexes in partitions_by_name.items()
        if (topic := topics.get(name)) is not None
    }
