"""Implement the broker's transaction coordinator: join decisions with their shards and timers.

How a transaction ends: Prepare* is persisted, and the outcome stands; EndTxn is answered; the
marker channel brings a marker to every partition; Complete* is persisted. That is Kafka's order.
The markers are due at once, and the event loop makes such a call before it reads from a socket
again: whoever acts on the answer finds them written, and the producer's next transaction doesn't
meet CONCURRENT_TRANSACTIONS. If a marker can't be written just then, the id stays in Prepare*
(CONCURRENT_TRANSACTIONS for the requests that follow), and the channel tries again as often as it
takes. Only when all are written, with the pending offsets of the groups committed or dropped, may
the id's next transaction begin (KAFKA-17507).

A shard is loaded, active, has failed, or has resigned (`shard.coordinator_state`); only an active
one decides anything. If the log of a shard is damaged, Kafka serves what it has read up to the
damage: it forgets transactional ids, so that their producers aren't fenced, and takes a decided
transaction for one that is open. Here the shard fails, as one of `__consumer_offsets` does in both.

The path of a request: api file -> this service -> a decision -> shard -> apply. Kafka:
`TransactionCoordinator`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence, Set
from enum import Enum, auto
from functools import partial

from coordinator.clock import Clock, Scheduler
from coordinator.errors import Code, Refused
from coordinator.features import Features
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.decision import TransactionEnded
from coordinator.shard.loading import LoadSlice
from coordinator.shard.placement import partition_for
from coordinator.shard.shard import IsLastSlice
from coordinator.shard.shard_log import ShardLog
from coordinator.shard.timers import KeyedTimers
from coordinator.transactions.add_partitions import (
    AddPartitionsCommand,
    add_partitions,
    check_partition_registered,
)
from coordinator.transactions.config import TransactionConfig
from coordinator.transactions.end_transaction import (
    EndTransactionCommand,
    complete_transaction_end,
    fence_and_abort,
    prepare_transaction_end,
    require_transaction_to_end,
)
from coordinator.transactions.expiry import TransactionalIdExpiry
from coordinator.transactions.init_producer_id import (
    InitProducerIdCommand,
    Prerequisite,
    init_producer_id,
    select_prerequisite_or_refuse,
)
from coordinator.transactions.listing import TransactionFilters, select_transactions
from coordinator.transactions.markers import LocateDestination, MarkerChannel
from coordinator.transactions.producer_id_generator import ProducerIdGenerator
from coordinator.transactions.producer_ids import ProducerIdManager
from coordinator.transactions.shard import TransactionCounters, TransactionShard
from coordinator.transactions.state import (
    PREPARED,
    V2,
    ProducerIdAndEpoch,
    TopicPartition,
    TransactionMetadata,
    TransactionStatus,
)

logger = logging.getLogger(__name__)

COMPLETE_RETRY_MS = 100


class TransactionTimer(Enum):
    """Names the timers of a transaction."""

    ABORT = auto()
    COMPLETE = auto()


class TransactionService:
    """Serves the requests of the transaction APIs; a refused one raises Refused with its code.

    Kafka: `TransactionCoordinator`.
    """

    def __init__(
        self,
        logs: Sequence[ShardLog],
        producer_ids: ProducerIdManager,
        locate_destination: LocateDestination,
        config: TransactionConfig,
        features: Features,
        clock: Clock,
        scheduler: Scheduler,
    ) -> None:
        self.shards = [
            TransactionShard(f"__transaction_state-{i}", log, features, clock)
            for i, log in enumerate(logs)
        ]
        self._features = features
        self._producer_ids = ProducerIdGenerator(self.shards, producer_ids)
        self.markers = MarkerChannel(locate_destination, self._complete_transaction, scheduler)
        self.counters = TransactionCounters()
        self._config = config
        self._clock = clock
        self._scheduler = scheduler
        self._is_closed = False
        self._timers: KeyedTimers[tuple[TransactionTimer, str]] = KeyedTimers(
            clock, scheduler, self._abort_or_complete_when_due
        )
        self._expiry = TransactionalIdExpiry(
            self.shards,
            config.transactional_id_expiration_ms,
            config.expiry_check_ms,
            clock,
            scheduler,
        )

    # Loading and election of shards

    def begin_loading(self) -> list[LoadSlice]:
        """Start the timer that expires ids; return the functions that load the shards by slices."""
        self._expiry.start_timer()
        return [partial(self.load_next_shard_slice, shard) for shard in self.shards]

    def resign_shard(self, shard_index: int) -> None:
        """Resign as coordinator of a shard: drop its state, timers and pending markers."""
        shard = self.shards[shard_index]
        shard.log.mark_resigned()
        for transactional_id in shard.state.transactions:
            self.markers.forget_transaction(transactional_id)
            self.counters.forget_transaction(transactional_id)
            for due in (TransactionTimer.ABORT, TransactionTimer.COMPLETE):
                self._timers.cancel_timer((due, transactional_id))
        shard.state.transactions.clear()

    def elect_shard(self, shard_index: int) -> LoadSlice:
        """Become coordinator of a shard again; return the function that loads it slice by slice."""
        shard = self.shards[shard_index]
        shard.log.restart_loading_as_leader()
        return partial(self.load_next_shard_slice, shard)

    def load_next_shard_slice(self, shard: TransactionShard) -> IsLastSlice:
        """Load the next slice of a shard's log; return whether that was the last one.

        After the last one, decided transactions are completed, open ones get their time-out, and
        the producer ids in use are skipped.
        """
        if not shard.log.load_next_slice():
            return False
        now_ms = self._clock.now_ms()
        for known in tuple(shard.state.transactions.values()):
            self._producer_ids.skip_ids_of(known)
            if shard.log.coordinator_state is not CoordinatorState.ACTIVE:
                # The records before the damage don't tell the transaction's present status: whether
                # it is open, or was committed, only the repaired log can say. So nothing is done to
                # it. In the partitions that it has written to, it stays open.
                del shard.state.transactions[known.transactional_id]
            elif known.status in PREPARED:
                self.write_decided_markers(known.transactional_id)
            elif known.status is TransactionStatus.ONGOING:
                self._timers.set_timer(
                    (TransactionTimer.ABORT, known.transactional_id), known.deadline_ms - now_ms
                )
        if shard.log.coordinator_state is not CoordinatorState.RESIGNED:
            self._producer_ids.mark_loaded(shard)
        return True

    @property
    def expired_id_count(self) -> int:
        """Return how many transactional ids have expired since the broker started."""
        return self._expiry.expired_count

    def close(self) -> None:
        """Stop all timers and drop pending markers."""
        self._is_closed = True
        self._timers.cancel_all_timers()
        self._expiry.cancel_all_timers()
        self.markers.drop_pending_markers()

    # Requests

    def list_transactions(self, filters: TransactionFilters) -> list[TransactionMetadata]:
        """Return the transactions of all shards that pass the filters.

        Shards that have failed or resigned are left out. Raises: Refused
        (COORDINATOR_LOAD_IN_PROGRESS while one is being loaded).
        """
        for shard in self.shards:
            if shard.log.coordinator_state is CoordinatorState.LOADING:
                shard.log.check_active()
        now_ms = self._clock.now_ms()
        return [
            known
            for shard in self.shards
            for known in select_transactions(shard.state.transactions.values(), filters, now_ms)
        ]

    def partitions_without_marker(self, transaction: TransactionMetadata) -> Set[TopicPartition]:
        """Return the partitions of a transaction that have no marker yet."""
        left = self.markers.partitions_without_marker(transaction.transactional_id)
        return transaction.partitions if left is None else left

    def find_transaction(self, transactional_id: str) -> TransactionMetadata | None:
        """Return the transaction of an id, None if there is none.

        Raises: Refused, see `_find_active_shard`.
        """
        return self._find_active_shard(transactional_id).state.transactions.get(transactional_id)

    def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, producer_id: int, producer_epoch: int
    ) -> ProducerIdAndEpoch:
        """Return the producer id and epoch that a producer has to use from now on.

        Without a transactional id it is always a new producer id. Raises: Refused.
        """
        if transactional_id is None:
            return ProducerIdAndEpoch(self._producer_ids.generate_producer_id(), 0)
        if not transactional_id:
            raise Refused(Code.INVALID_REQUEST, "an empty transactional id")
        if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            raise Refused(
                Code.INVALID_TRANSACTION_TIMEOUT,
                f"{timeout_ms} ms; at most {self._config.transaction_max_timeout_ms}",
            )
        command = InitProducerIdCommand(transactional_id, timeout_ms, producer_id, producer_epoch)
        shard = self._find_active_shard(transactional_id)
        first = select_prerequisite_or_refuse(shard.state, command)
        if first is Prerequisite.ABORT:
            self._fence_and_abort(shard.state.transactions[transactional_id])
            self.counters.aborts_by_init += 1
            first = select_prerequisite_or_refuse(shard.state, command)
        new_producer_id = (
            self._producer_ids.generate_producer_id()
            if first is Prerequisite.NEW_PRODUCER_ID
            else -1
        )
        return shard.execute_decision(
            init_producer_id(shard.state, command, new_producer_id, self._clock.now_ms())
        )

    def add_partitions(self, command: AddPartitionsCommand) -> None:
        """Register partitions in the producer's transaction, opening it if it isn't open.

        Raises: Refused.
        """
        shard = self._find_active_shard(command.transactional_id)
        known = shard.state.transactions.get(command.transactional_id)
        shard.execute_decision(add_partitions(shard.state, command, self._clock.now_ms()))
        if known is not None and known.status is not TransactionStatus.ONGOING:
            self._timers.set_timer(
                (TransactionTimer.ABORT, known.transactional_id), known.timeout_ms
            )

    def end_transaction(self, command: EndTransactionCommand) -> ProducerIdAndEpoch:
        """Commit or abort a transaction; return the producer id and epoch for the next one.

        On return the outcome stands, and the markers are about to be written. In transactions v2
        the epoch is the next one, or the producer id a new one. Raises: Refused.
        """
        shard = self._find_active_shard(command.transactional_id)
        known, must_end = require_transaction_to_end(shard.state, command)
        if not must_end:
            return ProducerIdAndEpoch(known.producer_id, known.producer_epoch)
        owner = shard.execute_decision(
            prepare_transaction_end(
                known,
                committed=command.committed,
                version=command.version,
                next_producer_id=self._producer_ids.generate_if_exhausted(known, command.version),
                now_ms=self._clock.now_ms(),
            )
        )
        if command.committed:
            self.counters.commits += 1
        else:
            self.counters.aborts_by_client += 1
        self.counters.decided_ns[command.transactional_id] = self._clock.monotonic_ns()
        prepared = shard.state.transactions[command.transactional_id]
        self._scheduler.call_later(0, partial(self._write_markers_after_answer, shard, prepared))
        return owner

    def verify_partition(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partition: TopicPartition,
        *,
        adds_partition: bool,
    ) -> None:
        """Raise Refused unless a partition is in the producer's transaction, or is added to it now.

        With `adds_partition` one that isn't there is added (transactions v2).
        """
        if adds_partition:
            wanted = frozenset((partition,))
            self.add_partitions(
                AddPartitionsCommand(
                    transactional_id, producer_id, producer_epoch, wanted, version=V2
                )
            )
            return
        state = self._find_active_shard(transactional_id).state
        check_partition_registered(state, transactional_id, producer_id, producer_epoch, partition)

    def _find_active_shard(self, transactional_id: str) -> TransactionShard:
        """Return the active shard of a transactional id.

        Raises: Refused (COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR unless the shard is active;
        COORDINATOR_NOT_AVAILABLE if a newer broker has written records of the id).
        """
        shard = self.shards[partition_for(transactional_id, len(self.shards))]
        shard.log.check_active()
        shard.log.unknown_records.check_readable(transactional_id)
        return shard

    def _fence_and_abort(self, transaction: TransactionMetadata) -> None:
        """Abort an Ongoing transaction, fence its owner, and write the markers."""
        version = self._features.transaction_version()
        self._find_active_shard(transaction.transactional_id).execute_decision(
            fence_and_abort(
                transaction,
                version=version,
                next_producer_id=self._producer_ids.generate_if_exhausted(transaction, version),
                now_ms=self._clock.now_ms(),
            )
        )
        self.counters.decided_ns[transaction.transactional_id] = self._clock.monotonic_ns()
        self.write_decided_markers(transaction.transactional_id)

    def _write_markers_after_answer(
        self, shard: TransactionShard, prepared: TransactionMetadata
    ) -> None:
        """Write the markers of a transaction whose end has been answered.

        If the shard has resigned in between, its next load writes them.
        """
        transactional_id = prepared.transactional_id
        known = shard.state.transactions.get(transactional_id)
        if known is prepared and not self._is_closed:
            self.write_decided_markers(transactional_id)

    def write_decided_markers(self, transactional_id: str) -> None:
        """Write the markers of a decided transaction, which is completed after the last one."""
        self._timers.cancel_timer((TransactionTimer.ABORT, transactional_id))
        shard = self._find_active_shard(transactional_id)
        known = shard.state.transactions[transactional_id]
        ended = TransactionEnded(
            known.producer_id,
            known.producer_epoch,
            known.status is TransactionStatus.PREPARE_COMMIT,
            shard.log.coordinator_epoch,
            known.client_version,
        )
        self.markers.write_markers(transactional_id, ended, known.partitions)

    def _complete_transaction(self, transactional_id: str) -> None:
        """Log that all markers of a transaction are written, or try again in a while."""
        shard = self._find_active_shard(transactional_id)
        known = shard.state.transactions[transactional_id]
        try:
            shard.execute_decision(complete_transaction_end(known, self._clock.now_ms()))
            self.counters.count_completion(
                transactional_id,
                committed=known.status is TransactionStatus.PREPARE_COMMIT,
                now_ns=self._clock.monotonic_ns(),
            )
        except Refused as refused:
            logger.warning("%s stays %s for now: %s", transactional_id, known.status.name, refused)
            self.counters.unlogged_ends.add(transactional_id)
            self._timers.set_timer((TransactionTimer.COMPLETE, transactional_id), COMPLETE_RETRY_MS)

    def _abort_or_complete_when_due(self, key: tuple[TransactionTimer, str]) -> None:
        """Abort a transaction that has timed out, or try again to complete one."""
        due, transactional_id = key
        shard = self.shards[partition_for(transactional_id, len(self.shards))]
        known = shard.state.transactions.get(transactional_id)  # none, if the shard has resigned
        match due:
            case TransactionTimer.ABORT if (
                known is not None and known.status is TransactionStatus.ONGOING
            ):
                logger.info("%s timed out after %d ms", transactional_id, known.timeout_ms)
                try:
                    self._fence_and_abort(known)
                    self.counters.aborts_by_timeout += 1
                except Refused as refused:
                    logger.warning("%s can't be aborted now: %s", transactional_id, refused)
                    self._timers.set_timer(key, self._config.abort_retry_ms)
            case TransactionTimer.COMPLETE if known is not None and known.status in PREPARED:
                self._complete_transaction(transactional_id)
