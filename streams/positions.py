"""Partitions and offsets, as every part of the runtime names them."""

from __future__ import annotations

from typing import NamedTuple


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.number}]"


class Committed(NamedTuple):
    """A committed offset with its metadata."""

    offset: int
    metadata: str


class CommittedOffsets(NamedTuple):
    """Committed offsets, and the partitions for which a transaction is still open."""

    offsets: dict[Partition, Committed]
    pending: list[Partition]
