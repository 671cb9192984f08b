"""What classic consumers say of themselves in ConsumerProtocol's bytes, by topic id.

The classic protocol names topics, KIP-848's identifies them: what isn't a topic (any more) is left
out, either way. ValueError for bytes that nobody can read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from coordinator.assignors.consumer_protocol import (
    NEWEST,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from coordinator.groups.consumer.facts import TopicPartitions
from coordinator.groups.consumer.topics import TopicList
from coordinator.shard.records import Reader


@dataclass(frozen=True, slots=True)
class Said:
    """A member's subscription."""

    topics: frozenset[str]
    owned: Mapping[UUID, frozenset[int]]
    rack_id: str | None


def read_subscription(metadata: bytes, topics: TopicList) -> Said:
    found = decode_subscription(metadata)
    return Said(frozenset(found.topics), _by_id(found.owned, topics), found.rack_id)


def read_assignment(data: bytes, topics: TopicList) -> tuple[TopicPartitions, bytes]:
    """Partitions, and the user data of the assignor that made it. No bytes at all are no
    partitions: the member has joined, and never synced."""
    if not data:
        return {}, b""
    partitions, user_data = decode_assignment(data)
    return _by_id(partitions, topics), user_data or b""


def write_assignment(
    partitions: Mapping[UUID, Iterable[int]], topics: TopicList, metadata: bytes
) -> bytes:
    """In the version of the member's metadata, as far as there is one. Metadata that nobody can
    read, of a protocol that has never been the group's, are none."""
    named = [
        (topic.name, partition)
        for topic_id, indexes in partitions.items()
        if (topic := topics.by_id(topic_id)) is not None
        for partition in sorted(indexes)
    ]
    version = Reader(metadata).int16() if len(metadata) > 1 else 0
    return encode_assignment(sorted(named), None, min(max(version, 0), NEWEST))


def _by_id(partitions: Iterable[tuple[str, int]], topics: TopicList) -> dict[UUID, frozenset[int]]:
    named: dict[str, set[int]] = {}
    for name, partition in partitions:
        named.setdefault(name, set()).add(partition)
    return {
        topic.id: frozenset(indexes)
        for name, indexes in named.items()
        if (topic := topics.get(name)) is not None
    }
