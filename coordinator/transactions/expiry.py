"""Expire transactional ids that nobody uses, by a timer.

All shards are looked through every `transaction.remove.expired.transaction.cleanup.interval.ms`, in
slices: so many ids at a time, then other work, then the next. Which ids have expired is decided
anew in each slice, by the state and the time there. Each tombstone is valid by itself: if an append
fails, or the broker is killed between two, the ids that are left go with the next check.
Source: TransactionStateManager.removeExpiredTransactionalIds.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from enum import Enum, auto

from coordinator.clock import Clock, Scheduler
from coordinator.errors import Refused
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.timers import KeyedTimers
from coordinator.transactions.end_transaction import make_expiry_tombstones
from coordinator.transactions.shard import TransactionShard

logger = logging.getLogger(__name__)

# Each takes about a millisecond.
LOOKED_AT_PER_SLICE = 2_000
TOMBSTONES_PER_SLICE = 250


class _ExpiryTimer(Enum):
    CHECK = auto()
    NEXT_SLICE = auto()


class TransactionalIdExpiry:
    """Looks for expired ids in the shards that are active, one slice after the other."""

    def __init__(
        self,
        shards: Sequence[TransactionShard],
        expiration_ms: int,
        check_interval_ms: int,
        clock: Clock,
        scheduler: Scheduler,
    ) -> None:
        self._shards = shards
        self._expiration_ms = expiration_ms
        self._check_ms = check_interval_ms
        self._clock = clock
        self._timers: KeyedTimers[_ExpiryTimer] = KeyedTimers(
            clock, scheduler, self._begin_check_or_expire_slice
        )
        self.expired_count = 0
        self._waiting: deque[TransactionShard] = deque()
        self._ids: deque[str] = deque()  # of the first shard that waits, still to be looked at

    def start_timer(self) -> None:
        """Start the timer of the checks; the first one comes when the interval has passed."""
        self._timers.set_timer(_ExpiryTimer.CHECK, self._check_ms)

    def cancel_all_timers(self) -> None:
        self._timers.cancel_all_timers()

    def _begin_check_or_expire_slice(self, due: _ExpiryTimer) -> None:
        """Begin a check when it is due, or handle its next slice."""
        if due is _ExpiryTimer.CHECK:
            self._timers.set_timer(_ExpiryTimer.CHECK, self._check_ms)
            if not self._waiting:
                self._waiting.extend(self._shards)
                self._ids.extend(self._waiting[0].state.transactions)
        else:
            self._expire_slice()
        if self._waiting:
            self._timers.set_timer(_ExpiryTimer.NEXT_SLICE, 0)

    def _expire_slice(self) -> None:
        """Look at the next ids, and append tombstones for those that have expired."""
        shard = self._waiting[0]
        looked_at = [self._ids.popleft() for _ in range(min(LOOKED_AT_PER_SLICE, len(self._ids)))]
        if shard.log.coordinator_state is CoordinatorState.ACTIVE:
            self._append_tombstones(shard, looked_at)
        else:
            self._ids.clear()
        if not self._ids:
            self._waiting.popleft()
            if self._waiting:
                self._ids.extend(self._waiting[0].state.transactions)

    def _append_tombstones(self, shard: TransactionShard, transactional_ids: list[str]) -> None:
        """Append tombstones for expired ids, as many as a slice takes; the others wait."""
        now_ms = self._clock.now_ms()
        expired = make_expiry_tombstones(
            shard.state, transactional_ids, self._expiration_ms, now_ms
        )
        # Expired ids that are too many for this slice are the first ones of the next.
        later = expired[TOMBSTONES_PER_SLICE:]
        self._ids.extendleft(record.transactional_id for record in reversed(later))
        try:
            shard.log.append_in_batches(expired[:TOMBSTONES_PER_SLICE])
            self.expired_count += min(len(expired), TOMBSTONES_PER_SLICE)
        except Refused as refused:
            logger.warning("expired transactional ids are kept for now: %s", refused)
            self._ids.clear()
