"""Name partitions and committed offsets for every part of the runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Partition(NamedTuple):
    """Names a partition of a topic (Kafka's TopicPartition)."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.number}]"


class OffsetAndMetadata(NamedTuple):
    """Represents a committed offset with its metadata (Kafka's OffsetAndMetadata)."""

    offset: int
    metadata: str


OffsetsToCommit = Iterable[tuple[Partition, OffsetAndMetadata]]
"""Offsets that are to be committed, each with its partition."""


class CommittedOffsets(NamedTuple):
    """Holds a group's committed offsets, and the partitions whose offset is still pending.

    `pending` are the partitions whose offsets a transaction that is still open may change.
    """

    offsets: dict[Partition, OffsetAndMetadata]
    pending: list[Partition]


def group_by_topic(partitions: Iterable[Partition]) -> dict[str, list[Partition]]:
    """Return the partitions of each topic, sorted."""
    grouped: dict[str, list[Partition]] = {}
    for partition in sorted(partitions):
        grouped.setdefault(partition.topic, []).append(partition)
    return grouped


NO_TIME = -1
