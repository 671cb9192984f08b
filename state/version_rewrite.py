"""Walk once over the versions of a store on disk, to write them into the changelog again.

Whatever the store had when the walk began is then in the changelog from there on, and what lies
below is needed no more. A walk goes on by some entries at each commit, and by two for each that was
written, so that it ends however fast the store grows.
"""

from __future__ import annotations

from state.store import StoreDisk

ENTRIES_MIN = 256
"""A commit writes at least so many entries again, if BYTES_MIN allow it."""
BYTES_MIN = 1 << 20
"""A commit that has written few bytes writes about so many again."""
_FACTOR = 2
"""A transaction writes so many entries, or bytes, again for each that it has written."""


class VersionRewrite:
    """Represents a walk that began when the store was at `changelog_offset` of its changelog."""

    def __init__(self, disk: StoreDisk, changelog_offset: int) -> None:
        self._disk = disk
        self._next_key: bytes | None = None
        self.changelog_offset = changelog_offset
        self.entry_count = 0
        """The number of entries that the walk has come past."""
        self.is_complete = False

    def advance_to_next_entries(self, write_count: int, write_bytes: int) -> dict[bytes, bytes]:
        """Return the next entries on disk by their keys, and move the walk past them.

        `write_count` and `write_bytes` are what the running transaction has written.
        """
        entries_max = max(ENTRIES_MIN, _FACTOR * write_count)
        bytes_left = max(BYTES_MIN, _FACTOR * write_bytes)
        found: dict[bytes, bytes] = {}
        for key, stored in self._disk.range(self._next_key, None):
            if len(found) == entries_max or bytes_left <= 0:
                self._next_key = key
                break
            found[key] = stored
            bytes_left -= len(key) + len(stored)
        else:
            self.is_complete = True
        self.entry_count += len(found)
        return found
