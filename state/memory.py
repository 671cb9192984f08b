"""A store's disk in memory: for tests, and for state that is rebuilt at each start.

Keys are kept in order from the first range on, in pieces of some hundreds: a store that nobody asks
for ranges does not pay for them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping

from state.store import Checkpoint

_PIECE_MAX = 1_000


class SortedKeys:
    """Keys in order, cut into pieces, so that adding one moves few others."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        ordered = sorted(keys)
        half = _PIECE_MAX // 2
        self._pieces = [ordered[i : i + half] for i in range(0, len(ordered), half)] or [[]]
        self._firsts = [piece[0] if piece else b"" for piece in self._pieces]
        """No key of a piece is smaller than this; those of the pieces before all are."""

    def add(self, key: bytes) -> None:
        """Add a key that is not there."""
        number = self._piece_of(key)
        piece = self._pieces[number]
        insort(piece, key)
        self._firsts[number] = min(self._firsts[number], key)
        if len(piece) > _PIECE_MAX:
            half = len(piece) // 2
            self._pieces[number : number + 1] = [piece[:half], piece[half:]]
            self._firsts.insert(number + 1, piece[half])

    def remove(self, key: bytes) -> None:
        """Remove a key that is there."""
        number = self._piece_of(key)
        piece = self._pieces[number]
        del piece[bisect_left(piece, key)]
        if not piece and len(self._pieces) > 1:
            del self._pieces[number], self._firsts[number]

    def between(self, first: bytes | None, last: bytes | None) -> Iterator[bytes]:
        """Keys from `first` up to, and without, `last`. Keys may come and go meanwhile."""
        start = b"" if first is None else first
        while True:
            number = self._piece_of(start)
            piece = self._pieces[number]
            end = len(piece) if last is None else bisect_left(piece, last)
            ends_here = end < len(piece) or number + 1 == len(self._firsts)
            following = b"" if ends_here else self._firsts[number + 1]
            yield from piece[bisect_left(piece, start) : end]
            if ends_here:
                return
            start = following

    def between_reversed(self, first: bytes | None, last: bytes | None) -> Iterator[bytes]:
        """`between`, from the last to the first."""
        bound = last
        while True:
            pieces = len(self._firsts)
            number = (pieces if bound is None else bisect_left(self._firsts, bound)) - 1
            if number < 0:
                return
            piece = self._pieces[number]
            start = 0 if first is None else bisect_left(piece, first)
            end = len(piece) if bound is None else bisect_left(piece, bound)
            bound = self._firsts[number]
            yield from piece[start:end][::-1]
            if start > 0:
                return

    def _piece_of(self, key: bytes) -> int:
        return max(bisect_right(self._firsts, key) - 1, 0)


class MemoryDisk:
    """Keeps what is written for as long as the process lives."""

    def __init__(self) -> None:
        self._data: dict[bytes, bytes] = {}
        self._keys: SortedKeys | None = None
        self._checkpoint: Checkpoint | None = None

    def get(self, key: bytes) -> bytes | None:
        return self._data.get(key)

    def range(
        self, first: bytes | None, last: bytes | None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        if self._keys is None:
            self._keys = SortedKeys(self._data)
        if first is not None and last is not None and first >= last:
            return
        ordered = self._keys.between_reversed if reverse else self._keys.between
        for key in ordered(first, last):
            value = self._data.get(key)
            if value is not None:
                yield key, value

    def approximate_count(self) -> int:
        return len(self._data)

    def checkpoint(self) -> Checkpoint | None:
        return self._checkpoint

    def write(self, changes: Mapping[bytes, bytes | None], checkpoint: Checkpoint) -> None:
        self._apply(changes.items())
        self._checkpoint = checkpoint

    def delete_range(self, first: bytes, last: bytes) -> None:
        for key, _ in list(self.range(first, last)):
            self._change(key, None)

    def load(self, changes: Iterable[tuple[bytes, bytes | None]], checkpoint: Checkpoint) -> None:
        self._apply(changes)
        self._checkpoint = checkpoint

    def _apply(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        if self._keys is None:
            data = self._data
            for key, value in changes:
                if value is None:
                    data.pop(key, None)
                else:
                    data[key] = value
        else:
            for key, value in changes:
                self._change(key, value)

    def _change(self, key: bytes, value: bytes | None) -> None:
        keys = self._keys
        if value is not None:
            if keys is not None and key not in self._data:
                keys.add(key)
            self._data[key] = value
        elif self._data.pop(key, None) is not None and keys is not None:
            keys.remove(key)

    def loaded(self) -> None:
        """Nothing is durable here."""

    def clear(self) -> None:
        self._data = {}
        self._keys = None
        self._checkpoint = None

    def close(self) -> None:
        """Nothing to release."""
