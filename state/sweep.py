"""Removing what has expired, a bounded number of entries at each commit.

A sweep walks round the disk in key order. Each commit it goes on by a few entries, and by two more
for each that was written, so that the dead never outnumber the living for long, and no commit has
to go through everything. It rests when it went round since time last moved.
"""

from __future__ import annotations

from itertools import islice

from state.store import Disk

_ENTRIES_MIN = 64
_ENTRIES_PER_WRITE = 2


class Sweep:
    """The place on `disk` where the next commit goes on."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._at: bytes | None = None
        self._began_ms = self._rests_at_ms = -1

    def next(self, writes: int, time_ms: int) -> list[tuple[bytes, bytes]]:
        """The next entries in the order of their keys; none where a round at `time_ms`, the
        store's stream time, would find nothing that the last one has not found."""
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
        """The disk is another one now."""
        self._at = None
        self._began_ms = self._rests_at_ms = -1
