"""Track the producers of a partition: epoch, last batches, and an open transaction.

`find_retried_append_or_refuse` is the decision (refuse, recognise a retry, or accept) and reads
only; `apply_batch` and `apply_marker` apply a batch or marker that is in the log, live and when the
log is scanned at start alike.

    a produced batch                                             outcome
    same epoch, (first, last) sequence among the last 5 batches  accepted before: its old offset
    lower epoch                                                  INVALID_PRODUCER_EPOCH
    higher epoch, first sequence not 0                           OUT_OF_ORDER_SEQUENCE_NUMBER
    same epoch, first sequence not last + 1 (0 after 2^31 - 1)   OUT_OF_ORDER_SEQUENCE_NUMBER
    above the lowest one that came while its transaction was
    being verified (`track_lowest_sequence`)                     OUT_OF_ORDER_SEQUENCE_NUMBER
    an unknown producer                                          accepted, any sequence
    non-transactional while a transaction is open                INVALID_TXN_STATE

Source: org.apache.kafka.storage.internals.log.{ProducerStateManager, ProducerAppendInfo}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from coordinator.errors import Code, Refused
from coordinator.log.batch import RecordBatch
from coordinator.log.transaction_index import AbortedTransaction

ForgottenCount: TypeAlias = int

BATCHES_KEPT = 5
_SEQUENCES = 2**31
_EPOCH_MAX = 2**15 - 1


class AppendedBatch(NamedTuple):
    """Represents an appended batch, to recognise a retry of it and to answer the retry.

    Kafka: `BatchMetadata`.
    """

    first_sequence: int
    last_sequence: int
    base_offset: int
    log_append_time_ms: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + (self.last_sequence - self.first_sequence) % _SEQUENCES


class ProducerStateEntry(NamedTuple):
    """Represents the state of one producer id on one partition.

    It is a value: an entry that a checkpoint has taken doesn't change while it is written on
    another thread. Kafka: `ProducerStateEntry`.
    """

    epoch: int
    coordinator_epoch: int = -1
    last_timestamp_ms: int = -1
    batches: tuple[AppendedBatch, ...] = ()  # at most the last BATCHES_KEPT

    def batches_of_epoch(self, epoch: int) -> tuple[AppendedBatch, ...]:
        """Return the last batches if they are of this epoch, else none.

        Sequences start again with a new epoch, so the batches of the old one are forgotten.
        """
        return self.batches if epoch == self.epoch else ()


class KnownProducer(NamedTuple):
    """Represents a producer's state, and where its open transaction begins: -1 if it has none."""

    producer_id: int
    state: ProducerStateEntry
    first_open_offset: int


class VerificationStateEntry(NamedTuple):
    """Represents the lowest sequence that an epoch has sent before its transaction was verified.

    Kafka: `VerificationStateEntry`.
    """

    epoch: int
    lowest_sequence: int
    timestamp_ms: int


class ProducerStateManager:
    """Holds the state of all producers of one partition.

    Kafka: `ProducerStateManager`. `now_ms` is the broker's clock: the ages of open transactions are
    told by it, as records may have timestamps of any time.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self._now_ms = now_ms
        self._known: dict[int, ProducerStateEntry] = {}
        self._expected: dict[
            int, VerificationStateEntry
        ] = {}  # by producer id, only until it writes
        # Producer id -> first offset. Transactions open in the order of their first offsets, and
        # a dict keeps that order: the first value is the first unstable offset.
        self._open: dict[int, int] = {}
        # Producer id -> when its first batch came; after a restart, when the log was opened.
        self._open_since_ms: dict[int, int] = {}

    def use_clock_from_now(self, now_ms: Callable[[], int]) -> ProducerStateManager:
        """Tell ages by this clock from now on, and return this manager.

        Transactions that are open already begin now: nothing says when their first batch came.
        """
        self._now_ms = now_ms
        self._open_since_ms = dict.fromkeys(self._open, now_ms())
        return self

    def find_producer(self, producer_id: int) -> ProducerStateEntry | None:
        return self._known.get(producer_id)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Return whether this epoch of the producer has an open transaction with data here."""
        return producer_id in self._open and self._known[producer_id].epoch == epoch

    def first_unstable_offset(self) -> int | None:
        """Return the first offset of the oldest open transaction; None if none is open."""
        for offset in self._open.values():
            return offset
        return None

    def oldest_open_transaction_at_ms(self) -> int | None:
        """Return when the oldest open transaction began, by the broker's clock; None if none is.

        After a restart that is when the log was opened. Another thread may call this too.
        """
        return min(self._open_since_ms.copy().values(), default=None)

    def __len__(self) -> int:
        """Return the number of producers whose state is kept."""
        return len(self._known)

    def iterate_producers(self) -> Iterator[KnownProducer]:
        """Yield each producer with its state and its open transaction.

        Those with an open transaction come first, in the order of the log.
        """
        for producer_id, first_offset in self._open.items():
            yield KnownProducer(producer_id, self._known[producer_id], first_offset)
        for producer_id, known in self._known.items():
            if producer_id not in self._open:
                yield KnownProducer(producer_id, known, -1)

    def restore_producer(
        self, producer_id: int, entry: ProducerStateEntry, first_offset: int
    ) -> None:
        """Restore one producer that `iterate_producers` has yielded, in the same order."""
        self._known[producer_id] = entry
        if first_offset >= 0:
            self._open[producer_id] = first_offset
            self._open_since_ms[producer_id] = self._now_ms()

    def track_lowest_sequence(self, batch: RecordBatch) -> None:
        """Remember the lowest sequence of a transaction's first batches, which may yet be refused.

        A producer sends several at once: until the lowest is in the log, no later one gets in, or
        the refused batches would be missing between them. Nothing of it is kept on disk: a producer
        that tries again begins with the lowest. A producer that has been replaced by a higher epoch
        is ignored.
        """
        known = self._known.get(batch.producer_id)
        if known is not None and batch.producer_epoch < known.epoch:
            return
        seen = self._expected.get(batch.producer_id)
        if (
            seen is None
            or batch.producer_epoch > seen.epoch
            or (batch.producer_epoch == seen.epoch and batch.base_sequence < seen.lowest_sequence)
        ):
            self._expected[batch.producer_id] = VerificationStateEntry(
                batch.producer_epoch, batch.base_sequence, batch.max_timestamp_ms
            )

    def find_retried_append_or_refuse(self, batch: RecordBatch) -> AppendedBatch | None:
        """Return the earlier append that this batch is a retry of, or None if it is to be appended.

        Raises: Refused (INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE).
        """
        known = self._known.get(batch.producer_id)
        if known is None:
            self._check_lowest_sequence(batch)
            return None
        if batch.producer_epoch == known.epoch:
            wanted = (batch.base_sequence, batch.last_sequence)
            for earlier in known.batches:
                if earlier[:2] == wanted:
                    return earlier
        elif batch.producer_epoch < known.epoch:
            raise Refused(
                Code.INVALID_PRODUCER_EPOCH,
                f"producer {batch.producer_id}: epoch {batch.producer_epoch}, now {known.epoch}",
            )
        self._check_lowest_sequence(batch)
        expected = _next_sequence(known, batch.producer_epoch)
        if batch.base_sequence != expected:
            raise Refused(
                Code.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id}: sequence {batch.base_sequence}, not {expected}",
            )
        if batch.producer_id in self._open and not batch.is_transactional:
            raise Refused(
                Code.INVALID_TXN_STATE,
                f"producer {batch.producer_id} has a transaction open and wrote outside it",
            )
        return None

    def _check_lowest_sequence(self, batch: RecordBatch) -> None:
        """Raise Refused (OUT_OF_ORDER_SEQUENCE_NUMBER) if a lower sequence is still missing."""
        seen = self._expected.get(batch.producer_id)
        if (
            seen is not None
            and batch.producer_epoch == seen.epoch
            and batch.base_sequence > seen.lowest_sequence
        ):
            raise Refused(
                Code.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id}: sequence {batch.base_sequence} before "
                f"{seen.lowest_sequence}, which was not taken",
            )

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int = 0
    ) -> None:
        """Raise Refused if a newer producer or a newer coordinator has written to the partition.

        In transactions v2 a marker has a higher epoch than the data that it ends. One with the same
        is late, from a transaction before; but where nothing is open, or no epoch is left, it may
        be a coordinator's second attempt, and does no harm (KAFKA-19999).

        Raises: Refused (INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED).
        """
        known = self._known.get(producer_id)
        if known is None:
            return
        if epoch < known.epoch:
            raise Refused(
                Code.INVALID_PRODUCER_EPOCH,
                f"marker of producer {producer_id}: epoch {epoch}, now {known.epoch}",
            )
        if (
            transaction_version >= 2
            and epoch == known.epoch < _EPOCH_MAX
            and producer_id in self._open
        ):
            raise Refused(
                Code.INVALID_PRODUCER_EPOCH,
                f"marker of producer {producer_id}: its transaction has the same epoch {epoch}",
            )
        if coordinator_epoch < known.coordinator_epoch:
            raise Refused(
                Code.TRANSACTION_COORDINATOR_FENCED,
                f"marker of coordinator epoch {coordinator_epoch}, now {known.coordinator_epoch}",
            )

    def apply_batch(
        self, batch: RecordBatch, base_offset: int, log_append_time_ms: int = -1
    ) -> None:
        """Update a producer's state for its data batch that is in the log at `base_offset`."""
        known = self._known.get(batch.producer_id)
        if known is None:
            known = ProducerStateEntry(batch.producer_epoch)
        batches = known.batches_of_epoch(batch.producer_epoch)
        if batch.base_sequence >= 0:
            last = AppendedBatch(
                batch.base_sequence, batch.last_sequence, base_offset, log_append_time_ms
            )
            batches = (*batches[1 - BATCHES_KEPT :], last)
        self._known[batch.producer_id] = ProducerStateEntry(
            batch.producer_epoch, known.coordinator_epoch, batch.max_timestamp_ms, batches
        )
        if batch.is_transactional:
            if batch.producer_id not in self._open:
                self._open[batch.producer_id] = base_offset
                self._open_since_ms[batch.producer_id] = self._now_ms()
            self._expected.pop(batch.producer_id, None)

    def apply_marker(self, marker: RecordBatch, offset: int) -> AbortedTransaction | None:
        """Update a producer's state for its marker in the log at this offset.

        Return the transaction that it aborted; None if it committed one, or none was open. Kafka:
        `ProducerAppendInfo.appendEndTxnMarker`, `ProducerStateManager.completeTxn`.
        """
        if marker.record_count == 0:
            return None  # compaction emptied this marker: it only keeps its producer's epoch
        committed, coordinator_epoch = marker.decode_marker()
        producer_id, epoch = marker.producer_id, marker.producer_epoch
        known = self._known.get(producer_id)
        batches = () if known is None else known.batches_of_epoch(epoch)
        self._known[producer_id] = ProducerStateEntry(
            epoch, coordinator_epoch, marker.max_timestamp_ms, batches
        )
        self._expected.pop(producer_id, None)
        first_offset = self._open.pop(producer_id, None)
        self._open_since_ms.pop(producer_id, None)
        if first_offset is None or committed:
            return None
        unstable = self.first_unstable_offset()
        stable = offset + 1 if unstable is None else unstable
        return AbortedTransaction(producer_id, first_offset, offset, stable)

    def forget_idle_producers(self, now_ms: int, idle_ms: int) -> ForgottenCount:
        """Forget producers that have written nothing for `idle_ms`, and return how many.

        One with an open transaction is never forgotten.
        """
        idle = [
            producer_id
            for producer_id, known in self._known.items()
            if producer_id not in self._open and now_ms - known.last_timestamp_ms >= idle_ms
        ]
        for producer_id in idle:
            del self._known[producer_id]
        self._expected = {
            producer_id: seen
            for producer_id, seen in self._expected.items()
            if now_ms - seen.timestamp_ms < idle_ms
        }
        return len(idle)


def _next_sequence(entry: ProducerStateEntry, epoch: int) -> int:
    """Return the first sequence that the next batch of this epoch has to have."""
    if epoch != entry.epoch or not entry.batches:
        return 0
    return (entry.batches[-1].last_sequence + 1) % _SEQUENCES
