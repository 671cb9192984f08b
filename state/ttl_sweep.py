"""Find expired entries, by reading a bounded number of entries at each commit.

A sweep walks round the disk in key order. At each commit it goes on by a few entries, and by two
more for each that was written, so that expired entries never outnumber the live ones for long, and
no commit has to read everything. It rests when it went round since time last advanced. TTL stores
sweep for values, and versioned stores for versions that have outlived their history.
"""

from __future__ import annotations

from itertools import islice

from state.keys import DiskEntry
from state.store import StoreDisk

_ENTRIES_MIN = 64
_ENTRIES_PER_WRITE = 2


class TtlSweep:
    """Tracks the position at which the next commit goes on to look for expired entries."""

    def __init__(self, disk: StoreDisk) -> None:
        self._disk = disk
        self._next_key: bytes | None = None
        self._round_started_ms = self._rests_until_ms = -1

    def advance_to_next_entries(self, write_count: int, stream_time_ms: int) -> list[DiskEntry]:
        """Return the next entries on disk to check for expiry, and move the sweep past them.

        They are in the order of their keys. None are returned while the sweep rests: where a round
        at this stream time would find nothing that the last one has not found.
        """
        if stream_time_ms <= self._rests_until_ms:
            return []
        if self._next_key is None:
            self._round_started_ms = stream_time_ms
        count = _ENTRIES_MIN + _ENTRIES_PER_WRITE * write_count
        found = list(islice(self._disk.range(self._next_key, None), count))
        if len(found) == count:
            self._next_key = found[-1][0] + b"\0"
        else:
            self._next_key, self._rests_until_ms = None, self._round_started_ms
        return found

    def restart(self) -> None:
        """Start from the first key again, since the disk's contents were replaced."""
        self._next_key = None
        self._round_started_ms = self._rests_until_ms = -1
