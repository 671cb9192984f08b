"""The object cache: committed values of the keys used last, above the disks of several stores.

One budget of bytes for all stores of a thread; what was used longest ago goes first, in whichever
store it is. "When" is counted in commits: within one, order does not matter.

The cache has what is committed, and nothing else: the bytes as they are on disk, and the decoded
object beside them if it can't be changed in place. An object that can be changed is decoded anew
for each transaction that uses it: user code may still hold the one that was committed, in another
store too, and change it whenever it likes.
"""

from __future__ import annotations

import sys
from typing import Any

from state.entry import Entry

ENTRY_BYTES = 360
"""Entry, the three objects that it surely has, and its place in a dict, measured."""


class Share:
    """What one store has in the cache, the least recently used first.

    `bytes` counts what a transaction has taken out to write it, too, until its outcome. A restore
    clears the share of a store that is behind, on a thread of its own.
    """

    __slots__ = ("bytes", "entries")

    def __init__(self) -> None:
        self.entries: dict[bytes, Entry[Any, Any]] = {}
        self.bytes = 0

    def clear(self) -> None:
        self.entries = {}
        self.bytes = 0

    def count(self) -> None:
        """Make `bytes` right again, after entries were taken that don't come back."""
        self.bytes = sum(size(key, entry.stored or b"") for key, entry in self.entries.items())


class ObjectCache:
    """Gives each store a share, and takes from all of them when they exceed `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._shares: list[Share] = []
        self.now = 1
        """Counts commits. Entries bear the number of the one that used them last; 0: none has."""

    @property
    def used_bytes(self) -> int:
        """About how much memory all entries take."""
        return sum(share.bytes for share in self._shares)

    def share(self) -> Share:
        """A share for one more store."""
        share = Share()
        self._shares.append(share)
        return share

    def give_back(self, share: Share) -> None:
        """The store is closed: its share goes. A second time does nothing."""
        share.clear()
        if share in self._shares:
            self._shares.remove(share)

    def commit(self) -> None:
        """A store has put what it committed into its share."""
        self.now += 1
        self.shrink()

    def shrink(self) -> None:
        """Let entries go until the budget holds."""
        excess = self.used_bytes - self._max_bytes
        while excess > 0:
            filled = [share for share in self._shares if share.entries]
            if not filled:
                return
            oldest = min(filled, key=_age)
            age = _age(oldest)
            excess -= _drop(oldest, age, excess)


def size(key: bytes, stored: bytes) -> int:
    """About how much memory an entry takes: key and value are there as bytes and as objects."""
    return ENTRY_BYTES + 2 * (len(key) + len(stored))


def _age(share: Share) -> int:
    return next((entry.used for entry in share.entries.values()), sys.maxsize)


def _drop(share: Share, age: int, excess: int) -> int:
    """Drop entries as old as `age`, at most `excess` bytes of them and one. Returns how many."""
    dropped = 0
    gone = []
    entries = share.entries
    for key, entry in entries.items():
        if entry.used > age or dropped >= excess:
            break
        dropped += size(key, entry.stored or b"")
        gone.append(key)
    for key in gone:
        del entries[key]
    if share.entries is entries:  # else it was cleared meanwhile
        share.bytes -= dropped
    return dropped
