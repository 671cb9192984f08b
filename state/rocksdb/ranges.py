"""Iterate over ranges of a database, which owns its iterators and closes them.

RocksDB's lock on a directory stays for as long as one iterator lives, so a disk closes all of them
when it closes, half used or not. One that is used after that raises StateError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rocksdict import ReadOptions

from state.errors import StateError


class Unusable:
    """Stands in for a closed database or iterator: every use of it raises `create_error()`."""

    def __init__(self, error: Callable[[], StateError]) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error()

    def ask(self, key: bytes) -> bytes | None:
        raise self._error()


class Cursor:
    """Holds RocksDB's iterator of one range until the database closes it."""

    __slots__ = ("at",)

    def __init__(self, at: Any) -> None:
        self.at = at


def walk(
    iterate: Callable[[ReadOptions], Any],
    cursors: set[Cursor],
    first: bytes | None,
    last: bytes | None,
    reverse: bool,
    failed: Callable[[Exception], StateError],
) -> Iterator[tuple[bytes, bytes]]:
    """Yield entries from `first` to before `end` by an iterator that the database can close.

    It is a generator, so nothing is held before its first step. `end` is RocksDB's own bound: it
    doesn't look at what is deleted beyond it. The iterator only borrows the bytes, which live as
    long as this frame does. rocksdict 0.3.29 has no lower bound: `set_iterate_lower_bound` sets the
    upper one.
    """
    bounds = ReadOptions()
    if last is not None:
        bounds.set_iterate_upper_bound(last)
    cursor = Cursor(iterate(bounds))
    cursors.add(cursor)
    try:
        # Every step goes through the cursor: a bound method kept here would keep the lock.
        if reverse:
            cursor.at.seek_to_last()
            while (key := cursor.at.key()) is not None:
                if first is not None and key < first:
                    return
                yield key, cursor.at.value()
                cursor.at.prev()
        else:
            if first is None:
                cursor.at.seek_to_first()
            else:
                cursor.at.seek(first)
            while (key := cursor.at.key()) is not None:
                yield key, cursor.at.value()
                cursor.at.next()
        try:
            cursor.at.status()  # the iteration may have ended at a block that can't be read
        except Exception as error:
            raise failed(error) from error
    finally:
        cursors.discard(cursor)
        cursor.at = None  # it must be gone before the bound that it borrows
