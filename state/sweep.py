"""Find expired entries, by reading a bounded number of entries at each commit.

A sweep walks round the disk in key order. At each commit it goes on by a few entries, and by two
more for each that was written, so that expired entries never outnumber the live ones for long, and
no commit has to read everything. It rests when it went round since time last advanced.
"""

from __future__ import annotations

from itertools import islice

from state.store import Disk

_ENTRIES_MIN = 64
_ENTRIES_PER_WRITE = 2


class Sweep:
    """Tracks the position at which the next commit goes on to look for expired entries."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._at: bytes | None = None
        self._began_ms = self._rests_at_ms = -1

    def next(self, writes: int, time_ms: int) -> list[tuple[bytes, bytes]]:
        """Return the next entries on disk in the order of their keys, or none if the sweep rests.

        It rests where a round at this stream time would find nothing that the last one has not
        found.
        """
        if time_ms <= self._rests_at_ms:
            return []
        if self._at is None:
            self._began_ms = time_ms
        count = _ENTRIES_MIN + _ENTRIES_PER_WRITE * writes
        found = list(islice(self._disk.range(self._at, None), count))
        if len(found) == count:
            self._at = found[-1][0] + b"\0"
        else:
            self._at, self._rests_at_ms = None, self._began_ms
        return found

    def restart(self) -> None:
        """Start from the first key again, since the disk's contents were replaced."""
        self._at = None
        self._began_ms = self._rests_at_ms = -1
