"""Sort what a transaction has written by key, and merge it with what is on disk.

An overlay is a plain dict, to which keys are added while the transaction runs and from which none
is removed. Its order is computed when a range is asked for: only the keys added since the last time
are sorted in.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from state.entry import StoreEntry, estimate_size_bytes
from state.keys import DiskEntry, DiskKey, StoredBytes

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")

_ONE_BY_ONE_MAX = 16
_ENTRY_BYTES = 300
"""The measured size of an entry without its value, with its place in the overlay."""
_SAMPLE = 16


class SortedOverlayKeys:
    """Sorts the keys of a dict that only grows."""

    def __init__(self, keys: dict[bytes, Any]) -> None:
        self._of = keys
        self._sorted: list[bytes] = []

    def keys_between(self, first: bytes | None, end: bytes | None) -> list[bytes]:
        """Return the keys from `first` up to, but without, `end`, in order; None is no bound."""
        added = len(self._of) - len(self._sorted)
        # A dict keeps the order of insertion: the new keys are at its end.
        newest = islice(reversed(self._of), added)
        if added <= _ONE_BY_ONE_MAX:
            for key in newest:
                insort(self._sorted, key)
        else:
            self._sorted.extend(newest)
            self._sorted.sort()
        start = 0 if first is None else bisect_left(self._sorted, first)
        stop = None if end is None else bisect_left(self._sorted, end)
        return self._sorted[start:stop]


def merge_overlay(
    disk: Iterable[DiskEntry],
    overlay: Mapping[bytes, T],
    overlay_keys: list[bytes],
    *,
    reverse: bool,
) -> Iterator[tuple[DiskKey, T | None, StoredBytes]]:
    """Yield each key with its object in the overlay, or None, and its bytes on disk, or b"".

    `disk` and `overlay_keys` are in order, or both in reverse. A key's object in the overlay is
    looked up when the key is reached.
    """
    remaining = iter(overlay_keys)
    pending = next(remaining, None)
    for key, stored in disk:
        while pending is not None and (pending > key if reverse else pending < key):
            yield pending, overlay[pending], b""
            pending = next(remaining, None)
        if pending == key:
            pending = next(remaining, None)
        yield key, overlay.get(key), stored
    while pending is not None:
        yield pending, overlay[pending], b""
        pending = next(remaining, None)


def estimate_overlay_bytes(overlay: dict[bytes, StoreEntry[K, V]]) -> int:
    """Return about how much memory the entries of an overlay take, in bytes, from a sample."""
    sample = list(islice(overlay.items(), _SAMPLE))
    sample += islice(reversed(overlay.items()), min(len(overlay) - len(sample), _SAMPLE))
    if not sample:
        return 0
    sizes = (
        _ENTRY_BYTES + 2 * len(key) + estimate_size_bytes(entry.value) for key, entry in sample
    )
    return sum(sizes) * len(overlay) // len(sample)
