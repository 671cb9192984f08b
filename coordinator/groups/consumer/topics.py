"""What consumer groups know of topics, and the hash that tells a group that its own have changed.

The broker's list of topics is handed in as `TopicList`. Whoever looks at it notes its version, and
needs to look again only when that has risen.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol
from uuid import UUID

NO_HASH = 0  # of no topics; and so that the group's are looked at as if they had changed


class Topic(Protocol):
    """One topic, as far as groups are concerned."""

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> UUID: ...
    @property
    def partitions(self) -> Sequence[object]: ...


class TopicList(Protocol):
    """All topics. `version` rises when one is made, deleted, or gets more partitions;
    `created_version` is what it was when the last one was made."""

    @property
    def version(self) -> int: ...
    @property
    def created_version(self) -> int: ...
    def __iter__(self) -> Iterator[Topic]: ...
    def get(self, name: str) -> Topic | None: ...
    def by_id(self, topic_id: UUID | None) -> Topic | None: ...


def metadata_hash(names: Iterable[str], topics: TopicList) -> int:
    """A signed 64-bit number that differs when ids or partitions of these topics do; 0 for none.

    It is compared with what this broker has written before, and not Kafka's hash (streamed XXH3):
    a group that the other broker has written sees other topics than its record says at its first
    heartbeat, which costs it one epoch and moves nothing.
    """
    known = [topic for topic in map(topics.get, sorted(set(names))) if topic is not None]
    if not known:
        return NO_HASH
    hasher = hashlib.blake2b(digest_size=8)
    for topic in known:
        name = topic.name.encode()
        hasher.update(struct.pack(">16siH", topic.id.bytes, len(topic.partitions), len(name)))
        hasher.update(name)
    return int.from_bytes(hasher.digest(), "big", signed=True)


def ids_of(names: Iterable[str], topics: TopicList) -> frozenset[UUID]:
    """The ids of those that exist."""
    return frozenset(topic.id for topic in map(topics.get, names) if topic is not None)
