"""Name the commits that wrote a store without a changelog, in the metadata of a task's offsets.

Nothing but its own disk has such a store. With the numbers of these commits beside the offsets, and
in the store's checkpoint, an older copy of it is told from the one that the offsets belong to. They
take three entries a store, and are left out where there is no room for those of all stores.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from streams.runtime.offsets.offset_metadata import OffsetMetadata

UNNUMBERED_COMMIT = 1
"""Stands for the first commit of a store that is there, and whose checkpoint names no commit."""
ENTRIES_PER_STORE = 3


class StoreCommits(NamedTuple):
    """Holds the numbers of the first, the last and the stored commit of a store; 0 for none.

    `first` began it when it was empty, `last` is the last that wrote it. `held` is the last that
    was on its disk when the offsets were committed: since Kafka commits first, a crash may leave
    the store there.
    """

    first: int = 0
    last: int = 0
    held: int = 0

    def to_entries(self, store: str) -> dict[str, int]:
        """Return the numbers as entries for the metadata of committed offsets."""
        return dict(zip(name_commit_entries(store), self, strict=True))


class CommitEntryNames(NamedTuple):
    """Names the entries of the offsets' metadata that have the numbers of `StoreCommits`."""

    first: str
    last: str
    held: str


def name_commit_entries(store: str) -> CommitEntryNames:
    """Return the names of a store's entries; names of stores have no blanks."""
    return CommitEntryNames(
        f"first commit of {store}", f"last commit of {store}", f"commit held by {store}"
    )


def read_store_commits(store: str, committed: Iterable[OffsetMetadata]) -> StoreCommits:
    """Read a store's commit numbers from a task's offsets: those of the offset committed last."""
    names = name_commit_entries(store)
    found = (StoreCommits(*(each.find_entry(n) or 0 for n in names)) for each in committed)
    return max(found, key=lambda each: each.last, default=StoreCommits())
