"""What the cleaner knows of the transactions whose batches and markers it comes by.

It meets the batches of a log in their order. A batch of an aborted transaction is dropped. A marker
may go when nothing of its transaction was met: then there is no record left whose fate it tells.
The aborted transactions of which something was met stay in the index of the cleaned segment.
Source: CleanedTransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.log.aborted import AbortedTransaction
from coordinator.log.batch import Batch


class CleanedTransactions:
    """`aborted`: at least those with data or a marker in what is going to be read."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self.kept: list[AbortedTransaction] = []  # whose marker stays, as they were completed
        self._coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}  # open at this point of the log
        self._met: set[int] = set()  # of these, the ones with data in what was read
        self._committed: set[int] = set()  # producers of other transactions with data

    def is_aborted(self, batch: Batch) -> bool:
        """Whether a batch of records, the next one in the log, is of an aborted transaction."""
        self._advance(batch)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._met.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def ends_nothing(self, marker: Batch) -> bool:
        """Whether the marker, the next batch in the log, has nothing left to end."""
        self._advance(marker)
        if not marker.record_count:
            return True  # cleaned before: it stands for its producer's epoch only
        committed, _ = marker.marker()
        producer_id = marker.producer_id
        if committed:
            had_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_data
        ended = self._aborted.pop(producer_id, None)
        if ended is None or producer_id not in self._met:
            return True
        self._met.remove(producer_id)
        self.kept.append(ended)
        return False

    def take_kept(self) -> list[AbortedTransaction]:
        """Those that were kept since the last call."""
        kept, self.kept = self.kept, []
        return kept

    def _advance(self, batch: Batch) -> None:
        coming = self._coming
        while coming and coming[-1].first_offset <= batch.last_offset:
            found = coming.pop()
            if found.last_offset >= batch.base_offset:  # else it ended before what is read
                self._aborted[found.producer_id] = found
