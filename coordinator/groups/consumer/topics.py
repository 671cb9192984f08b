"""Describe the topics that consumer groups see, and hash them to tell that they have changed.

The broker's list of topics is handed in as `TopicList`. Whoever looks at it notes its version, and
needs to look again only when that has risen.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol
from uuid import UUID

NO_HASH = 0  # of no topics; a group that has it looks at its topics as if they had changed


class GroupTopic(Protocol):
    """Describes what groups need to know of a topic: its name, id and partitions."""

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> UUID: ...
    @property
    def partitions(self) -> Sequence[object]: ...


class TopicList(Protocol):
    """Describes the list of all topics.

    `version` rises when one is made, deleted, or gets more partitions; `created_version` is what it
    was when the last one was made.
    """

    @property
    def version(self) -> int: ...
    @property
    def created_version(self) -> int: ...
    def __iter__(self) -> Iterator[GroupTopic]: ...
    def get(self, name: str) -> GroupTopic | None: ...
    def by_id(self, topic_id: UUID | None) -> GroupTopic | None: ...


def compute_metadata_hash(names: Iterable[str], topics: TopicList) -> int:
    """Return a signed 64-bit hash of the ids and partitions of these topics; 0 for none.

    It is compared with what this broker has written before, and not Kafka's hash (streamed XXH3):
    a group that the other broker has written sees other topics than its record says at its first
    heartbeat, which costs it one epoch and moves nothing.
    """
    existing_topics = [topic for topic in map(topics.get, sorted(set(names))) if topic is not None]
    if not existing_topics:
        return NO_HASH
    hasher = hashlib.blake2b(digest_size=8)
    for topic in existing_topics:
        name = topic.name.encode()
        hasher.update(struct.pack(">16siH", topic.id.bytes, len(topic.partitions), len(name)))
        hasher.update(name)
    return int.from_bytes(hasher.digest(), "big", signed=True)


def find_topic_ids(names: Iterable[str], topics: TopicList) -> frozenset[UUID]:
    """Return the ids of those of the named topics that exist."""
    return frozenset(topic.id for topic in map(topics.get, names) if topic is not None)
