"""Contracts of the state package: what a store's disk offers, and what a changelog carries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

ChangelogEntry = tuple[bytes, bytes | None, int]
"""One write as it stands in a changelog: key, value (None is a deletion), timestamp in ms. A plain
tuple: one is made for each key that a transaction wrote."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a store knows of its changelog.

    `position` is the first changelog offset that the store has not seen. `topic_id` tells a
    changelog that was deleted and made again from the one that the store was written with.
    """

    position: int
    topic_id: str


class Disk(Protocol):
    """Where committed state is kept: bytes to bytes, and a checkpoint that moves with the data."""

    def get(self, key: bytes) -> bytes | None: ...

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All entries in key order."""
        ...

    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint of the last `write` that became durable; None before the first."""
        ...

    def write(self, changes: Mapping[bytes, bytes | None], checkpoint: Checkpoint) -> None:
        """Apply `changes` (None deletes), and the checkpoint after the last of them.

        A crash in the middle leaves the old checkpoint beside a prefix of the changes, which a
        replay of the changelog from the old checkpoint puts right.
        """
        ...

    def clear(self) -> None:
        """Forget everything, the checkpoint included."""
        ...

    def close(self) -> None: ...
