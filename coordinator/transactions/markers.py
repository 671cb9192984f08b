"""Send the markers of decided transactions to the brokers that lead their partitions.

Theory of operation. Each destination has a queue, and at most one request at a time: markers that
are queued meanwhile go out together in the next. A destination answers each marker with a code:

    code                              what happens to that marker
    NONE                              written
    UNSUPPORTED_FOR_MESSAGE_FORMAT,   not needed: nothing can have been written there
    UNSUPPORTED_VERSION
    INVALID_PRODUCER_EPOCH,           given up: the partition has seen a later owner or
    TRANSACTION_COORDINATOR_FENCED    coordinator
    any other                         tried again after a while, wherever its partition is then

A partition without a broker needs no marker. When the last marker of a transaction is settled,
`on_completed` is called, which may be before `write_markers` returns.

Kafka leaves a transaction whose marker is given up in Prepare* until its coordinator moves, and
every later request of its id is refused with CONCURRENT_TRANSACTIONS. Here it is completed.
Source: kafka.coordinator.transaction.{TransactionMarkerChannelManager,
TransactionMarkerRequestCompletionHandler}.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

from coordinator.clock import Scheduler
from coordinator.errors import Code
from coordinator.shard.decision import TransactionEnded
from coordinator.transactions.state import TopicPartition

IsSettled: TypeAlias = bool

logger = logging.getLogger(__name__)

RETRY_MS = 100
RETRY_MS_MAX = 5_000

NOT_NEEDED = frozenset({Code.UNSUPPORTED_FOR_MESSAGE_FORMAT, Code.UNSUPPORTED_VERSION})
GIVEN_UP = frozenset({Code.INVALID_PRODUCER_EPOCH, Code.TRANSACTION_COORDINATOR_FENCED})


@dataclass(frozen=True, slots=True)
class TransactionMarker:
    """Represents the marker of one transaction for partitions of one destination."""

    transactional_id: str
    ended: TransactionEnded
    partitions: Sequence[TopicPartition]


MarkerAnswers = Sequence[Sequence[Code]]  # a code for each partition of each marker, in their order


class MarkerDestination(Protocol):
    """Represents a broker that leads partitions, and writes markers to them."""

    def send_markers(
        self, markers: Sequence[TransactionMarker], on_answer: Callable[[MarkerAnswers], None]
    ) -> None:
        """Write markers; `on_answer` is called once with their codes, maybe before this returns."""
        ...


# Returns the broker that leads a partition; None: nobody does, and it needs no marker.
LocateDestination = Callable[[TopicPartition], MarkerDestination | None]


@dataclass(slots=True)
class _PendingMarkers:
    """Represents a transaction that has markers to come."""

    ended: TransactionEnded
    left: set[TopicPartition]
    failures: int = 0  # answers after which markers had to be tried again
    retrying: int = 0  # partitions whose marker was refused and is sent again after a while


@dataclass(slots=True)
class _MarkerQueue:
    """Holds the partitions that wait for one destination, by transactional id."""

    destination: MarkerDestination
    waiting: dict[str, list[TopicPartition]] = field(default_factory=dict)
    is_under_way: bool = False


@dataclass(slots=True)
class MarkerCounters:
    """Counts the markers of partitions by outcome."""

    written: int = 0
    retried: int = 0
    given_up: int = 0


class MarkerChannel:
    """Queues markers by destination, sends them, and retries those that fail.

    Kafka: `TransactionMarkerChannelManager`.
    """

    def __init__(
        self,
        locate_destination: LocateDestination,
        on_completed: Callable[[str], None],
        scheduler: Scheduler,
    ) -> None:
        self._locate = locate_destination
        self._completed = on_completed
        self._scheduler = scheduler
        self._pending: dict[str, _PendingMarkers] = {}
        self._queues: dict[int, _MarkerQueue] = {}
        self.counters = MarkerCounters()

    def write_markers(
        self, transactional_id: str, ended: TransactionEnded, partitions: Iterable[TopicPartition]
    ) -> None:
        """Write a transaction's marker to these partitions, retrying until all are settled."""
        left = sorted(partitions)
        self._pending[transactional_id] = _PendingMarkers(ended, set(left))
        self._enqueue_and_send_markers(transactional_id, left)

    def forget_transaction(self, transactional_id: str) -> None:
        """Drop the markers of a transaction, as its coordinator has resigned.

        The next coordinator begins with these markers anew.
        """
        self._pending.pop(transactional_id, None)
        for queue in self._queues.values():
            queue.waiting.pop(transactional_id, None)

    def partitions_without_marker(self, transactional_id: str) -> Set[TopicPartition] | None:
        """Return the partitions that still wait for their marker; None if no marker is pending."""
        pending = self._pending.get(transactional_id)
        return None if pending is None else pending.left

    @property
    def unsettled_count(self) -> int:
        """Return the number of markers that aren't settled yet."""
        return sum(len(pending.left) for pending in tuple(self._pending.values()))

    @property
    def retrying_count(self) -> int:
        """Return the number of markers that were refused, and wait to be sent again."""
        return sum(pending.retrying for pending in tuple(self._pending.values()))

    def drop_pending_markers(self) -> None:
        """Drop all pending markers."""
        self._pending.clear()
        for queue in self._queues.values():
            queue.waiting.clear()

    def _enqueue_and_send_markers(
        self, transactional_id: str, partitions: Iterable[TopicPartition]
    ) -> None:
        """Put markers into the queues of the brokers that lead the partitions now, and send."""
        touched: dict[int, _MarkerQueue] = {}
        for partition in partitions:
            destination = self._locate(partition)
            if destination is None:
                logger.info("no marker in %s-%d: it is gone", *partition)
                self._pending[transactional_id].left.discard(partition)
                continue
            queue = self._queues.get(id(destination))
            if queue is None:
                queue = self._queues[id(destination)] = _MarkerQueue(destination)
            queue.waiting.setdefault(transactional_id, []).append(partition)
            touched[id(destination)] = queue
        self._complete_if_done(transactional_id)
        for queue in touched.values():
            self._send_queue(queue)

    def _send_queue(self, queue: _MarkerQueue) -> None:
        """Send all that waits in a queue in one request, unless one is pending."""
        if queue.is_under_way or not queue.waiting:
            return
        waiting, queue.waiting = queue.waiting, {}
        markers = [
            TransactionMarker(transactional_id, self._pending[transactional_id].ended, partitions)
            for transactional_id, partitions in waiting.items()
        ]
        queue.is_under_way = True
        queue.destination.send_markers(
            markers, partial(self._settle_answer_and_send_next, queue, markers)
        )

    def _settle_answer_and_send_next(
        self, queue: _MarkerQueue, markers: Sequence[TransactionMarker], answers: MarkerAnswers
    ) -> None:
        """Handle the codes of a request: complete, retry later, and send the next one."""
        queue.is_under_way = False
        for marker, codes in zip(markers, answers, strict=True):
            pending = self._pending.get(marker.transactional_id)
            if pending is None or pending.ended is not marker.ended:
                continue  # the transaction was forgotten meanwhile
            failed = [
                partition
                for partition, code in zip(marker.partitions, codes, strict=True)
                if not self._count_marker_outcome(marker, partition, code)
            ]
            pending.left.difference_update(set(marker.partitions).difference(failed))
            if failed:
                self._retry_markers_later(marker.transactional_id, pending, failed)
            else:
                self._complete_if_done(marker.transactional_id)
        self._send_queue(queue)

    def _count_marker_outcome(
        self, marker: TransactionMarker, partition: TopicPartition, code: Code
    ) -> IsSettled:
        """Count the outcome of a marker; return False if it has to be tried again."""
        if code is Code.NONE:
            self.counters.written += 1
            return True
        where = f"{marker.transactional_id}: marker in {partition[0]}-{partition[1]}"
        if code in NOT_NEEDED:
            logger.info("%s: not needed, %s", where, code.name)
            return True
        if code in GIVEN_UP:
            self.counters.given_up += 1
            logger.warning("%s: given up, %s", where, code.name)
            return True
        self.counters.retried += 1
        logger.warning("%s: tried again later, %s", where, code.name)
        return False

    def _retry_markers_later(
        self, transactional_id: str, pending: _PendingMarkers, partitions: Sequence[TopicPartition]
    ) -> None:
        """Send the markers of these partitions again after a growing delay.

        Other transactions don't wait with this one: it may be a single partition that fails.
        """

        def dispatch_again() -> None:
            if self._pending.get(transactional_id) is pending:
                pending.retrying -= len(partitions)
                self._enqueue_and_send_markers(transactional_id, partitions)

        delay_ms = min(RETRY_MS_MAX, RETRY_MS << min(pending.failures, 10))
        pending.failures += 1
        pending.retrying += len(partitions)
        self._scheduler.call_later(delay_ms, dispatch_again)

    def _complete_if_done(self, transactional_id: str) -> None:
        """Report the transaction as completed if none of its partitions waits for a marker."""
        pending = self._pending.get(transactional_id)
        if pending is not None and not pending.left:
            del self._pending[transactional_id]
            self._completed(transactional_id)
