"""Keep a store's data in memory, for tests and for state that is rebuilt at each start.

Keys are kept in order from the first range on, in pieces of some hundreds: a store that is never
read by ranges does not pay for them.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping

from state.database_statistics import DatabaseStatistic
from state.keys import DiskChange, DiskEntry
from state.store_checkpoint import StoreCheckpoint

_PIECE_KEYS_MAX = 1_000


class SortedKeys:
    """Keeps keys in order, cut into pieces, so that adding a key moves few others.

    One thread writes, others may read meanwhile: a reader looks at a copy of the list of pieces,
    and no piece in it is ever empty.
    """

    def __init__(self, keys: Iterable[bytes], piece_keys_max: int) -> None:
        self._piece_keys_max = piece_keys_max
        ordered = sorted(keys)
        half = piece_keys_max // 2
        self._pieces = [ordered[i : i + half] for i in range(0, len(ordered), half)]

    def add_key(self, key: bytes) -> None:
        """Add a key that is not there."""
        if not self._pieces:
            self._pieces.append([key])
            return
        number = _find_piece(self._pieces, key)
        piece = self._pieces[number]
        insort(piece, key)
        if len(piece) > self._piece_keys_max:
            half = len(piece) // 2
            self._pieces[number : number + 1] = [piece[:half], piece[half:]]

    def remove_key(self, key: bytes) -> None:
        """Remove a key that is there."""
        number = _find_piece(self._pieces, key)
        piece = self._pieces[number]
        if len(piece) == 1:
            del self._pieces[number]
        else:
            del piece[bisect_left(piece, key)]

    def keys_between(self, first: bytes | None, end: bytes | None) -> Iterator[bytes]:
        """Yield the keys from `first` up to, but without, `end`; keys may come and go meanwhile."""
        start = b"" if first is None else first
        while pieces := self._pieces.copy():
            number = _find_piece(pieces, start)
            found = pieces[number].copy()
            following = pieces[number + 1][0] if number + 1 < len(pieces) else None
            stop = len(found) if end is None else bisect_left(found, end)
            yield from found[bisect_left(found, start) : stop]
            if following is None or stop < len(found):
                return
            start = following

    def keys_between_reversed(self, first: bytes | None, last: bytes | None) -> Iterator[bytes]:
        """Yield the keys below `last` down to `first`; keys may come and go meanwhile."""
        bound = last
        while pieces := self._pieces.copy():
            number = (
                len(pieces) if bound is None else bisect_left(pieces, bound, key=_get_first_key)
            )
            if number == 0:
                return
            found = pieces[number - 1].copy()
            start = 0 if first is None else bisect_left(found, first)
            end = len(found) if bound is None else bisect_left(found, bound)
            bound = found[0]
            yield from found[start:end][::-1]
            if start > 0:
                return


def _get_first_key(piece: list[bytes]) -> bytes:
    return piece[0]


def _find_piece(pieces: list[list[bytes]], key: bytes) -> int:
    return max(bisect_right(pieces, key, key=_get_first_key) - 1, 0)


class MemoryDisk:
    """Keeps a store's data and checkpoint for as long as the process lives.

    One thread writes, others may read meanwhile. The first range puts the keys in order, and no key
    may come or go until they are. A piece of keys in order has at most `piece_keys_max`.
    """

    def __init__(self, *, piece_keys_max: int = _PIECE_KEYS_MAX) -> None:
        self._piece_keys_max = piece_keys_max
        self._ordering = threading.RLock()
        self._data: dict[bytes, bytes] = {}
        self._keys: SortedKeys | None = None
        self._checkpoint: StoreCheckpoint | None = None

    def get(self, key: bytes) -> bytes | None:
        return self._data.get(key)

    def range(
        self, first: bytes | None, end: bytes | None, *, reverse: bool = False
    ) -> Iterator[DiskEntry]:
        keys = self._keys or self._get_or_sort_keys()
        if first is not None and end is not None and first >= end:
            return
        ordered = keys.keys_between_reversed if reverse else keys.keys_between
        for key in ordered(first, end):
            value = self._data.get(key)
            if value is not None:
                yield key, value

    def raise_if_corrupted(self) -> None:
        """Do nothing: memory is not damaged."""

    def approximate_count(self) -> int:
        return len(self._data)

    def read_properties(self, names: Iterable[str]) -> dict[str, int]:
        """Return nothing: memory has no properties of RocksDB."""
        return {}

    def read_statistics(self, names: Collection[str]) -> dict[str, DatabaseStatistic]:
        """Return nothing: memory has no statistics of RocksDB."""
        return {}

    def read_checkpoint(self) -> StoreCheckpoint | None:
        return self._checkpoint

    def write_changes(
        self,
        changes: Mapping[bytes, bytes | None],
        checkpoint: StoreCheckpoint,
        new_keys: Collection[bytes] = (),
    ) -> None:
        self._apply_changes(changes.items())
        self._checkpoint = checkpoint

    def delete_range(self, first: bytes, end: bytes) -> None:
        self._apply_changes((key, None) for key, _ in list(self.range(first, end)))

    def load_changes(self, changes: Iterable[DiskChange], checkpoint: StoreCheckpoint) -> None:
        self._apply_changes(changes)
        self._checkpoint = checkpoint

    def _get_or_sort_keys(self) -> SortedKeys:
        with self._ordering:
            if self._keys is None:
                self._keys = SortedKeys(self._data, self._piece_keys_max)
            return self._keys

    def _apply_changes(self, changes: Iterable[DiskChange]) -> None:
        with self._ordering:
            data = self._data
            for key, value in changes:
                if self._keys is not None:
                    self._apply_change(key, value)
                elif value is None:
                    data.pop(key, None)
                else:
                    data[key] = value

    def _apply_change(self, key: bytes, value: bytes | None) -> None:
        keys = self._keys
        if value is not None:
            if keys is not None and key not in self._data:
                keys.add_key(key)
            self._data[key] = value
        elif self._data.pop(key, None) is not None and keys is not None:
            keys.remove_key(key)

    def finish_load(self) -> None:
        """Do nothing: there is nothing to flush."""

    def clear_all_data(self) -> None:
        with self._ordering:
            self._data = {}
            self._keys = None
            self._checkpoint = None

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
