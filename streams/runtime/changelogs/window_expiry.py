"""Track up to which offset the changelog of a window or session store holds expired records alone.

A changelog of windows is not cut by the wall clock: its records are deleted when what they wrote
has expired by the store's own stream time. One mark is kept for each store: stream time T and
changelog position P at some commit. Every record below P is of a time up to T, since stream time is
the largest there was. Once the store itself has deleted all times up to T from its disk, all below
P has expired: the **expired offset** becomes P, is committed with the offsets' metadata, and only
then are the records deleted (`streams.runtime.threads.changelog_purge`). Then a new mark is taken.
So about twice the retention is kept.

The expired offset in the metadata proves at a restore that a changelog which begins there has lost
nothing (`ChangelogExpiry`). Expired offset and mark survive restarts and moves with the metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from streams.common.topic_partitions import Partition


class ExpiredRecords(NamedTuple):
    """Holds the offset of a changelog below which all records have expired, as committed.

    `inputs` are the partitions whose committed metadata say so, under the name of `store`.
    """

    changelog: Partition
    offset: int
    store: str
    inputs: tuple[Partition, ...]


@dataclass(slots=True)
class WindowExpiry:
    """Tracks the expired offset of one changelog, and the mark by which it advances.

    `expired_offset` is None where no commit has named one, as in those that a tool has made. A
    `mark_time_ms` of -1 means that there is no mark. For a versioned store it stays that, and
    `mark_offset` is where its changelog is to be written again
    (`streams.runtime.changelogs.version_expiry`).
    """

    expired_offset: int | None = None
    mark_time_ms: int = -1
    mark_offset: int = 0
    purged_offset: int = 0
    """The expired offset that was handed to the purge last."""

    def advance(self, stream_time_ms: int, deleted_before_ms: int, position: int) -> None:
        """Advance the expired offset to the mark if that has expired, and take a mark.

        `deleted_before_ms`: the store has deleted what is of an earlier time. `position` is that
        of the store in its changelog.
        """
        if 0 <= self.mark_time_ms < deleted_before_ms:
            self.expired_offset = max(self.expired_offset or 0, self.mark_offset)
            self.mark_time_ms = -1
        if self.mark_time_ms < 0 <= stream_time_ms and position > (self.expired_offset or 0):
            self.mark_time_ms, self.mark_offset = stream_time_ms, position


class ExpiryEntryNames(NamedTuple):
    """Names the entries of a store's expiry in the metadata of offsets."""

    expired_offset: str
    mark_time: str
    mark_offset: str


def name_expiry_entries(store: str) -> ExpiryEntryNames:
    """Return the names of a store's entries; names of stores have no blanks."""
    return ExpiryEntryNames(
        f"expired offset of {store}", f"mark time of {store}", f"mark offset of {store}"
    )


def to_metadata_entries(store: str, expiry: WindowExpiry) -> dict[str, int]:
    """Return the entries of the offsets' metadata that say what has expired, by their names."""
    values = (expiry.expired_offset or 0, expiry.mark_time_ms, expiry.mark_offset)
    return dict(zip(name_expiry_entries(store), values, strict=True))


def read_window_expiry(store: str, entries: Mapping[str, int | None]) -> WindowExpiry:
    """Return the expiry of a store by metadata entries, which may be unknown."""
    expired, time_ms, offset = (entries.get(name) for name in name_expiry_entries(store))
    if expired is None:
        return WindowExpiry()
    if time_ms is None or offset is None:
        return WindowExpiry(expired)
    return WindowExpiry(expired, time_ms, offset)
