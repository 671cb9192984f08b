"""Expire offsets by a timer, and delete an empty group with the last of its offsets.

Each shard is swept every `offsets.retention.check.interval.ms`, in slices: so many offsets at a
time, then whoever waits, then the next. What is due is decided anew in each slice, by the state and
the time there (see `offsets.expire`).
"""

from __future__ import annotations

import logging
from collections import deque
from typing import NamedTuple, TypeAlias

from coordinator.clock import Clock, Scheduler
from coordinator.errors import Refused
from coordinator.groups.offset_policy import (
    build_deletion_records,
    find_offset_policy,
    iterate_group_ids,
)
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.groups.state import Record
from coordinator.offsets.config import OffsetConfig
from coordinator.offsets.expire import build_expiry_tombstones, is_empty_after_expiry
from coordinator.offsets.state import OffsetForgotten, TopicPartition
from coordinator.shard.timers import KeyedTimers

AppendedCount: TypeAlias = int

logger = logging.getLogger(__name__)

SLICE_SIZE = 250  # offsets and groups together: few enough even if all have expired
NEXT_SLICE = -1


class OffsetExpiry:
    """Sweeps active shards for expired offsets, one slice after the other."""

    def __init__(
        self,
        shards: GroupShards,
        config: OffsetConfig,
        clock: Clock,
        scheduler: Scheduler,
    ) -> None:
        self._shards = shards
        self._config = config
        self._clock = clock
        self._timers: KeyedTimers[int] = KeyedTimers(
            clock, scheduler, self._begin_sweep_or_run_slice
        )  # by shard, or NEXT_SLICE
        self._sweeps: deque[_Sweep] = deque()

    def schedule_sweeps(self, shard_index: int) -> None:
        """Sweep this shard, which has become active, once every check interval."""
        self._timers.set_timer(shard_index, self._config.retention_check_interval_ms)

    def cancel_sweeps(self, shard_index: int) -> None:
        """Stop sweeping a shard that has resigned.

        A sweep of it that has begun finds no group any more, or is refused.
        """
        self._timers.cancel_timer(shard_index)

    def cancel_all_sweeps(self) -> None:
        """Cancel all sweeps."""
        self._timers.cancel_all_timers()
        self._sweeps.clear()

    def _begin_sweep_or_run_slice(self, key: int) -> None:
        """Start the sweep of a shard whose interval has passed, or run the next slice."""
        if key == NEXT_SLICE:
            self._append_tombstones_in_slice()
        else:
            self._timers.set_timer(key, self._config.retention_check_interval_ms)
            self._sweeps.append(_Sweep(self._shards.all[key]))
        if self._sweeps:
            self._timers.set_timer(NEXT_SLICE, 0)

    def _append_tombstones_in_slice(self) -> None:
        """Run one slice of the pending sweeps in turn; end a sweep whose tombstones are refused."""
        left = SLICE_SIZE
        while self._sweeps and left > 0:
            sweep = self._sweeps[0]
            try:
                left = self._append_tombstones_of_expired(sweep, left)
            except Refused as refused:
                self._sweeps.popleft()
                logger.warning("offsets that have expired are kept for now: %s", refused)
                continue
            if left > 0:
                self._sweeps.popleft()

    def _append_tombstones_of_expired(self, sweep: _Sweep, max_count: int) -> AppendedCount:
        """Check at most `max_count` offsets and append tombstones of those that have expired.

        Returns what is left of the number: above 0 if that was all of the shard.
        """
        shard, now_ms = sweep.shard, self._clock.now_ms()
        records: list[Record] = []
        deleted_group_ids: list[str] = []
        expirations = 0
        while max_count > 0 and sweep.try_advance_to_next_partitions(max_count):
            max_count -= 1 + len(sweep.partitions)
            expired = self._find_expired(shard, sweep.group_id, sweep.partitions, now_ms)
            expirations += len(expired.tombstones)
            if expired.deletes_group:
                deleted_group_ids.append(sweep.group_id)
                records += build_deletion_records(shard, sweep.group_id)
            else:
                records += expired.tombstones
        before = {group_id: shard.count_members(group_id) for group_id in deleted_group_ids}
        shard.log.append_in_batches(records)
        for group_id in deleted_group_ids:
            shard.count_member_changes_since(group_id, before[group_id])
            shard.drop_transient_states(group_id)
        shard.offset_counters.expirations += expirations
        return max_count

    def _find_expired(
        self, shard: GroupShard, group_id: str, partitions: list[TopicPartition], now_ms: int
    ) -> _ExpiredOffsets:
        """Return which of the offsets have expired, and whether the group ends with them."""
        holding = find_offset_policy(shard, group_id)
        if holding is None:  # deleted since the sweep began
            return _ExpiredOffsets([], deletes_group=False)
        offsets, retention_ms = shard.state.offsets, self._config.retention_ms
        expired = build_expiry_tombstones(
            offsets, group_id, holding, partitions, retention_ms, now_ms
        )
        deletes_group = holding.is_empty and is_empty_after_expiry(offsets, group_id, len(expired))
        return _ExpiredOffsets(expired, deletes_group)


class _ExpiredOffsets(NamedTuple):
    tombstones: list[OffsetForgotten]
    deletes_group: bool  # since nothing else is left of it


class _Sweep:
    """Walks one shard from its first group to its last, one group or part of it at a time."""

    def __init__(self, shard: GroupShard) -> None:
        self.shard = shard
        self.group_id = ""
        self.partitions: list[TopicPartition] = []  # those selected by the last call
        self._groups = deque(iterate_group_ids(shard))
        self._remaining_partitions: deque[TopicPartition] = deque()  # of the group, for later calls

    def try_advance_to_next_partitions(self, max_count: int) -> bool:
        """Select at most `max_count` more partitions of a group; return False if none are left."""
        if not self._remaining_partitions:
            if not self._groups:
                return False
            self.group_id = self._groups.popleft()
            self._remaining_partitions.extend(
                self.shard.state.offsets.committed.get(self.group_id, ())
            )
        self.partitions = [
            self._remaining_partitions.popleft()
            for _ in range(min(max_count, len(self._remaining_partitions)))
        ]
        return True
