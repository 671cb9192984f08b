"""What a transaction has written, in key order, and merged with what is on disk.

An overlay is a plain dict, to which keys are added while the transaction runs and from which none
is taken. Its order is made up when a range is asked for: only the keys added since the last time
are sorted in.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")

_ONE_BY_ONE_MAX = 16


class Order:
    """The keys of a dict that only grows, sorted."""

    def __init__(self, keys: dict[bytes, Any]) -> None:
        self._of = keys
        self._sorted: list[bytes] = []

    def between(self, first: bytes | None, last: bytes | None) -> list[bytes]:
        """The keys from `first` up to, and without, `last`; None: no bound."""
        added = len(self._of) - len(self._sorted)
        # A dict keeps the order of insertion: what is new is at its end.
        newest = islice(reversed(self._of), added)
        if added <= _ONE_BY_ONE_MAX:
            for key in newest:
                insort(self._sorted, key)
        else:
            self._sorted.extend(newest)
            self._sorted.sort()
        start = 0 if first is None else bisect_left(self._sorted, first)
        end = None if last is None else bisect_left(self._sorted, last)
        return self._sorted[start:end]


def merged(
    disk: Iterable[tuple[bytes, bytes]],
    overlay: Mapping[bytes, T],
    keys: list[bytes],
    *,
    reverse: bool,
) -> Iterator[tuple[bytes, T | None, bytes]]:
    """Key, what the overlay has of it (None: nothing), what the disk has of it (b"": nothing).

    `disk` and `keys` are in order, or both against it. What the overlay has of a key is looked up
    when the key is reached.
    """
    fresh = iter(keys)
    pending = next(fresh, None)
    for key, stored in disk:
        while pending is not None and (pending > key if reverse else pending < key):
            yield pending, overlay[pending], b""
            pending = next(fresh, None)
        if pending == key:
            pending = next(fresh, None)
        yield key, overlay.get(key), stored
    while pending is not None:
        yield pending, overlay[pending], b""
        pending = next(fresh, None)
