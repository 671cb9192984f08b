"""Index the aborted transactions of a segment, those whose abort marker is in it.

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
from typing import NamedTuple, TypeAlias

EntryIndex: TypeAlias = int

_ENTRY = Struct(">hqqqq")
_by_last_offset = attrgetter("last_offset")


class AbortedTransaction(NamedTuple):
    """Represents an aborted transaction of a partition, with the offsets of its data and marker.

    `last_stable_offset` is the one at completion. Kafka: `AbortedTxn`.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class CollectedTransactions(NamedTuple):
    """Represents aborted transactions; unless complete, later segments may have more of them."""

    aborted: list[AbortedTransaction]
    is_complete: bool


class TransactionIndex:
    """Holds one entry for each abort marker of a segment that ended a transaction with data.

    Entries are only ever added at the end, in the order of the markers.
    """

    def __init__(self, encoded_entries: bytes = b"") -> None:
        """Decode the entries from the content of a `.txnindex` file."""
        self._entries = [
            AbortedTransaction(*rest) for _, *rest in _ENTRY.iter_unpack(encoded_entries)
        ]

    def add_entry(self, entry: AbortedTransaction) -> None:
        self._entries.append(entry)

    def encode_entries_from(self, start_byte: int) -> bytes:
        """Encode the entries that `.txnindex` has from this byte on."""
        return b"".join(
            _ENTRY.pack(0, *entry) for entry in self._entries[start_byte // _ENTRY.size :]
        )

    def collect_aborted(self, fetch_offset: int, upper_bound_offset: int) -> CollectedTransactions:
        """Return the aborted transactions with data between two offsets.

        The range is [`fetch_offset`, `upper_bound_offset`). Kafka:
        `TransactionIndex.collectAbortedTxns`.
        """
        found = []
        # Entries are in the order of their markers. Once the stable offset at completion has
        # reached the upper bound, every transaction completed later began at or above it.
        for at in range(self._find_first_entry_ending_from(fetch_offset), len(self._entries)):
            entry = self._entries[at]
            if entry.first_offset < upper_bound_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return CollectedTransactions(found, is_complete=True)
        return CollectedTransactions(found, is_complete=False)

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return iter(self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def _find_first_entry_ending_from(self, offset: int) -> EntryIndex:
        return bisect_left(self._entries, offset, key=_by_last_offset)
