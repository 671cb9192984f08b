"""Iterate over ranges of a database, which owns its iterators and closes them.

RocksDB's lock on a directory stays for as long as one iterator lives, so a disk closes all of them
when it closes, half used or not. One that is used after that raises StateError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rocksdict import ReadOptions

from state.errors import StateError
from state.keys import DiskEntry


class ClosedHandle:
    """Stands in for a closed database or iterator: every use of it raises `create_error()`."""

    def __init__(self, create_error: Callable[[], StateError]) -> None:
        self._error = create_error

    def __getattr__(self, name: str) -> Any:
        raise self._error()

    def raise_error(self, key: bytes) -> bytes | None:
        raise self._error()


class RangeCursor:
    """Holds RocksDB's iterator of one range until the database closes it."""

    __slots__ = ("iterator",)

    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator


def iterate_range(
    create_iterator: Callable[[ReadOptions], Any],
    open_cursors: set[RangeCursor],
    first: bytes | None,
    end: bytes | None,
    reverse: bool,
    to_state_error: Callable[[Exception], StateError],
) -> Iterator[DiskEntry]:
    """Yield entries from `first` to before `end` by an iterator that the database can close.

    It is a generator, so nothing is held before its first step. `end` is RocksDB's own bound: it
    doesn't look at what is deleted beyond it. The iterator only borrows the bytes, which live as
    long as this frame does. rocksdict 0.3.29 has no lower bound: `set_iterate_lower_bound` sets the
    upper one.
    """
    bounds = ReadOptions()
    if end is not None:
        bounds.set_iterate_upper_bound(end)
    cursor = RangeCursor(create_iterator(bounds))
    open_cursors.add(cursor)
    try:
        # Every step goes through the cursor: a bound method kept here would keep the lock.
        if reverse:
            cursor.iterator.seek_to_last()
            while (key := cursor.iterator.key()) is not None:
                if first is not None and key < first:
                    return
                yield key, cursor.iterator.value()
                cursor.iterator.prev()
        else:
            if first is None:
                cursor.iterator.seek_to_first()
            else:
                cursor.iterator.seek(first)
            while (key := cursor.iterator.key()) is not None:
                yield key, cursor.iterator.value()
                cursor.iterator.next()
        try:
            cursor.iterator.status()  # the iteration may have ended at a block that can't be read
        except Exception as error:
            raise to_state_error(error) from error
    finally:
        open_cursors.discard(cursor)
        cursor.iterator = None  # it must be gone before the bound that it borrows
