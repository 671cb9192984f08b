"""Track the transactions whose batches and markers the cleaner meets.

It meets the batches of a log in their order. A batch of an aborted transaction is dropped. A marker
may go when nothing of its transaction was met: then there is no record left whose outcome it tells.
The aborted transactions of which something was met stay in the index of the cleaned segment.
Source: CleanedTransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from coordinator.log.batch import RecordBatch
from coordinator.log.transaction_index import AbortedTransaction

IsDiscardable: TypeAlias = bool


class CleanedTransactionMetadata:
    """Tracks which transactions are open, aborted or committed while batches are read in order.

    `aborted` has at least the aborted transactions with data or a marker in the batches that are
    going to be read. Kafka: `CleanedTransactionMetadata`.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self.kept: list[AbortedTransaction] = []  # those whose marker stays, in order of completion
        self._coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}  # open at this point of the log
        self._met: set[int] = set()  # of these, the producers with data in the batches read so far
        self._committed: set[int] = set()  # producers of other transactions with data

    def on_batch_read(self, batch: RecordBatch) -> IsDiscardable:
        """Read the log's next batch of records; return whether its transaction was aborted.

        Kafka: `CleanedTransactionMetadata.onBatchRead`.
        """
        self._note_aborted_begun_up_to(batch)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._met.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def on_control_batch_read(self, marker: RecordBatch) -> IsDiscardable:
        """Read the log's next marker; return whether no data of its transaction is left.

        Kafka: `CleanedTransactionMetadata.onControlBatchRead`.
        """
        self._note_aborted_begun_up_to(marker)
        if not marker.record_count:
            return True  # emptied by an earlier cleaning: it only keeps its producer's epoch
        producer_id = marker.producer_id
        if marker.decode_marker().is_commit:
            had_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_data
        ended = self._aborted.pop(producer_id, None)
        if ended is None or producer_id not in self._met:
            return True
        self._met.remove(producer_id)
        self.kept.append(ended)
        return False

    def pop_transactions_with_kept_marker(self) -> list[AbortedTransaction]:
        """Remove and return the aborted transactions that kept their marker since the last call."""
        kept, self.kept = self.kept, []
        return kept

    def _note_aborted_begun_up_to(self, batch: RecordBatch) -> None:
        """Note the aborted transactions that begin up to the end of this batch as open."""
        coming = self._coming
        while coming and coming[-1].first_offset <= batch.last_offset:
            found = coming.pop()
            if found.last_offset >= batch.base_offset:  # else it ended before this batch
                self._aborted[found.producer_id] = found
