"""The aborted transactions of a partition, in the order in which they were completed.

A read_committed consumer gets the entries that touch what it fetched, and drops the batches of
those producers from the first offset on until it meets the abort marker.

On disk an entry is version int16 0, then int64: producer id, first and last offset, and the last
stable offset at completion (`.txnindex`). The last offset is the marker's own.
Source: org.apache.kafka.storage.internals.log.{AbortedTxn, TransactionIndex}.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter
from struct import Struct
from typing import NamedTuple

_ENTRY = Struct(">hqqqq")
_by_last_offset = attrgetter("last_offset")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(entry: AbortedTransaction) -> bytes:
    return _ENTRY.pack(0, *entry)


class AbortedTransactions:
    """Grows at its end, one entry for each abort marker that ended a transaction with data."""

    def __init__(self) -> None:
        self._entries: list[AbortedTransaction] = []

    def add(self, entry: AbortedTransaction) -> None:
        self._entries.append(entry)

    def touching(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """Those with data in [offset, upper_offset)."""
        found = []
        # Entries are in the order of their markers. Once the stable offset at completion has
        # reached the upper bound, every transaction completed later began at or above it.
        for at in range(self._first_ending_from(offset), len(self._entries)):
            entry = self._entries[at]
            if entry.first_offset < upper_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_offset:
                break
        return found

    def ending_in(self, offset: int, upper_offset: int) -> Iterator[AbortedTransaction]:
        """Those whose marker is in [offset, upper_offset)."""
        for at in range(self._first_ending_from(offset), len(self._entries)):
            if self._entries[at].last_offset >= upper_offset:
                return
            yield self._entries[at]

    def __bool__(self) -> bool:
        return bool(self._entries)

    def _first_ending_from(self, offset: int) -> int:
        return bisect_left(self._entries, offset, key=_by_last_offset)
