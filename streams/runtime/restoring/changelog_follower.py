"""Follow the changelogs of standby tasks, so that their stores are nearly up to date.

Theory of operation. A task is added with all of its stores waiting, and followed until withdrawn.
Every few seconds the ranges of all changelogs are fetched; `follow_batch` polls a batch. A store is

    state      event                              next       what happens
    waiting    its changelog's range is known     reading    read on from where it is; cleared first
                                                             if it may have missed writes
    reading    a batch                            reading    loaded, its position after it
    reading    its limit is reached               limited    a table's own topic alone
    limited    the limit has moved                reading
    reading    the changelog lost its position,
               or can't be read now               waiting
    reading,
    limited    the changelog was made again       waiting    rebuilt from the new one, unless what
                                                             was committed rests on the former
    any        corrupt                            waiting    it alone is to be cleared
    any        withdrawn                          -          made durable: a restore goes on there

Committed records alone are read, so nothing that may be taken back gets into a store. How far a
store may follow is fetched by `followed_ranges`. The time of a checkpoint
(`StoreCheckpoint.written_ms`) is that of a fetch of the changelog's end that the store has reached,
not long before the last one; the end tells the lag. A broker that is away, or a changelog that is
missing, is waited for: a standby ends no thread because of what it can't read for now. Kafka
Streams' counterpart is the standby part of StoreChangelogReader.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic

from state.errors import StoreCorrupted
from streams.common.host import Host
from streams.common.topic_partitions import CommittedOffsets, Partition
from streams.errors import AuthorizationError, StreamsError
from streams.runtime.changelogs.changelog import (
    ChangelogRange,
    are_tombstones_expired,
)
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.clients.interfaces import AdminClient, ConsumerClient
from streams.runtime.restoring.followed_ranges import FollowedRangeFetcher
from streams.runtime.restoring.progress import (
    RestoreListener,
    StandbyProgress,
    SuspendReason,
    notify_listener,
)
from streams.runtime.restoring.restoration import (
    FollowedStore,
    HasMore,
    T,
    group_by_partition,
    to_changelog_entries,
    try_make_withdrawn_store_durable,
)

log = logging.getLogger(__name__)

FOLLOW_INTERVAL_S = 0.1
"""The seconds between two polls while less comes than a batch has room for."""
_POLL_WAIT_S = 0.005
_RANGES_INTERVAL_S = 10.0
_WAITING_INTERVAL_S = 1.0
"""The seconds between two fetches of the ranges while a store waits for one."""
_DURABLE_INTERVAL_S = 10.0
_RENEWED_AT_AGE = 0.25
"""The age of a checkpoint, as a part of `delete.retention.ms`, at which it is written again."""
_CORRUPTIONS_MAX = 3
"""How often a store may be corrupt before it has caught up: then the machine is damaged."""


class ChangelogFollower(Generic[T]):
    """Follows the changelogs of standby tasks with a consumer of its own.

    `create_consumer` is called when there is something to follow for the first time.
    `fetch_committed_offsets` returns the group's, for tables that follow their own topic;
    `is_transactional`: whether changelogs are; `accepts_loss`: a changelog may have lost its first
    records. `before_batch` is called before each load of one.
    """

    records_max: int = 1_000
    """The most records polled and loaded at a time: a stream thread shares the interpreter."""

    def __init__(
        self,
        name: str,
        create_consumer: Callable[[], ConsumerClient],
        admin: AdminClient,
        host: Host,
        *,
        fetch_committed_offsets: Callable[[list[Partition]], CommittedOffsets],
        is_transactional: bool,
        accepts_loss: bool = False,
        listener: RestoreListener | None = None,
        before_batch: Callable[[], None] = lambda: None,
    ) -> None:
        self._create_consumer = create_consumer
        self._ranges = FollowedRangeFetcher(
            *(name, admin, host, fetch_committed_offsets),
            is_transactional=is_transactional,
            accepts_loss=accepts_loss,
        )
        self._host = host
        self._listener = listener or RestoreListener()
        self._before_batch = before_batch
        self._consumer: ConsumerClient | None = None
        self._stores: dict[Partition, FollowedStore[T]] = {}
        self._tasks: dict[str, T] = {}
        self._ranges_at_s = self._durable_at_s = 0.0
        self.followed_records = 0
        """The number of records loaded since the start."""
        self.progress: tuple[StandbyProgress, ...] = ()
        """The progress of each standby store, as of the last batch."""

    @property
    def is_following(self) -> bool:
        """Return whether there is any task to follow."""
        return bool(self._tasks)

    def register_tasks(self, tasks: Iterable[T]) -> None:
        """Register standby tasks, whose stores belong to the follower until they are withdrawn."""
        if self._consumer is None:
            self._consumer = self._create_consumer()
        for task in tasks:
            self._tasks[task.name] = task
            for logged in task.stores.logged.values():
                logged.changelog_topic_id = ""  # so that it is fetched each time
                followed = self._stores[logged.changelog] = FollowedStore(task, logged)
                followed.set_position_by_checkpoint()
        self._ranges_at_s = 0.0

    def follow_batch(self) -> HasMore:
        """Follow with the next batch, and return whether there is more to do at once."""
        if not self._tasks:
            return False
        if self._host.monotonic_s() >= self._ranges_at_s:
            self._fetch_and_apply_ranges()
        has_more = self._poll_and_load_batch()
        if self._host.monotonic_s() >= self._durable_at_s:
            self._make_positions_durable()
        self.progress = tuple(each.snapshot_progress() for each in self._stores.values())
        return has_more

    def withdraw_tasks(
        self, task_names: Collection[str], withdrawn: list[T], reason: SuspendReason
    ) -> None:
        """Stop following the named tasks, and append those that were followed to `withdrawn`.

        What their stores have got is made durable.
        Raises: the first error of a store, once all tasks are withdrawn.
        """
        failure: Exception | None = None
        for name in task_names:
            task = self._tasks.pop(name, None)
            if task is None:
                continue
            withdrawn.append(task)
            for logged in task.stores.logged.values():
                followed = self._stores.pop(logged.changelog)
                logged.hide_from_readers()
                self._stop_reading(followed)
                failure = failure or try_make_withdrawn_store_durable(logged)
                position, changelog = logged.changelog_position, followed.changelog
                end = position if changelog is None else changelog.end_offset
                self._notify_listener("on_update_suspended", logged, position, end, reason)
        self.progress = tuple(each for each in self.progress if each.task not in task_names)
        if failure is not None:
            raise failure

    def restart_reading(self) -> None:
        """Read on from each store's own position, since records that were polled are lost."""
        for followed in self._stores.values():
            self._wait_for_range(followed)
        self._ranges_at_s = 0.0

    def close(self) -> None:
        """Close the consumer; the stores of tasks that were not withdrawn are left as they are."""
        if self._consumer is not None:
            self._consumer.close()

    def _fetch_and_apply_ranges(self) -> None:
        """Fetch the range of each changelog, and apply it to the store that follows it."""
        ranges = self._ranges.fetch_ranges([each.logged_store for each in self._stores.values()])
        for followed in self._stores.values():
            changelog = ranges.get(followed.logged_store.changelog)
            if changelog is None:
                continue
            try:
                self._start_or_adopt_range(followed, changelog)
            except StoreCorrupted as damage:
                self._rebuild_corrupt(followed, damage)
        self._ranges_at_s = self._host.monotonic_s() + self._choose_interval_s(ranges.values())

    def _choose_interval_s(self, ranges: Collection[ChangelogRange]) -> float:
        """Return the seconds until the next fetch; a store that reaches an end has seen deletions.

        It has to do that well within the time that its changelog keeps them.
        """
        if not ranges or any(followed.changelog is None for followed in self._stores.values()):
            return _WAITING_INTERVAL_S
        kept_ms = [each.tombstone_retention_ms for each in ranges if each.tombstone_retention_ms]
        return max(min([_RANGES_INTERVAL_S, *(ms / 4_000 for ms in kept_ms)]), _WAITING_INTERVAL_S)

    def _start_or_adopt_range(self, followed: FollowedStore[T], changelog: ChangelogRange) -> None:
        """Begin to read a waiting store's changelog, or give a followed one its new range."""
        known = followed.changelog
        if known is not None and known.topic_id == changelog.topic_id:
            followed.changelog = changelog
            # Each batch was checked for its age (`_note_end_or_rebuild`) when it was loaded.
            if followed.logged_store.changelog_position >= changelog.end_offset:
                followed.since_ms = changelog.fetched_at_ms
                self._renew_checkpoint(followed, changelog)
                followed.show_to_readers()
        else:
            self._stop_reading(followed)
            if not followed.logged_store.rebuild_reason:  # else nothing was loaded
                followed.logged_store.store.finish_restore()  # moves the checkpoint
            self._start_following_store(followed, changelog)
        self._resume_reading_below_limit(followed)

    def _renew_checkpoint(self, followed: FollowedStore[T], changelog: ChangelogRange) -> None:
        """Write the checkpoint of a store that is at the end again before its time is too old.

        Where a changelog is idle for days, the store would else be taken to have been away.
        """
        kept_ms, at_ms = changelog.tombstone_retention_ms, changelog.fetched_at_ms
        if kept_ms is None or at_ms - followed.written_ms < kept_ms * _RENEWED_AT_AGE:
            return
        position = followed.logged_store.changelog_position
        followed.logged_store.store.replay_changelog(
            (),
            followed.logged_store.create_checkpoint(position, changelog.topic_id, at_ms),
        )
        followed.written_ms = at_ms
        followed.is_durable = False

    def _start_following_store(self, followed: FollowedStore[T], changelog: ChangelogRange) -> None:
        """Find from where a store follows its changelog; clear it if it may have missed writes."""
        logged = followed.logged_store
        logged.hide_from_readers()
        checkpoint = logged.read_checkpoint()
        logged.apply_disk_checkpoint(checkpoint, changelog.topic_id, changelog.end_offset)
        start = self._ranges.find_follow_start(followed.task, logged, checkpoint, changelog)
        if start is None:
            self._wait_for_range(followed)
            return
        if start.rebuild_reason is not None:
            self._clear_store(followed, start.rebuild_reason)
        logged.changelog_position = start.position
        followed.changelog, followed.since_ms = changelog, start.since_ms
        followed.written_ms = start.since_ms
        followed.is_from_scratch = checkpoint is None or start.rebuild_reason is not None
        followed.show_to_readers()
        self._notify_listener("on_update_start", logged, start.position)

    def _resume_reading_below_limit(self, followed: FollowedStore[T]) -> None:
        """Resume reading a store's changelog, unless it waits or has reached its limit."""
        logged, changelog = followed.logged_store, followed.changelog
        if changelog is None or followed.is_reading:
            return
        if logged.is_source_topic and logged.changelog_position >= changelog.end_offset:
            return
        assert self._consumer is not None
        self._consumer.add_partitions({logged.changelog: logged.changelog_position})
        followed.is_reading = True

    def _poll_and_load_batch(self) -> HasMore:
        """Poll one batch and load it into its stores; return whether there may be more at once."""
        reading = {p: followed for p, followed in self._stores.items() if followed.is_reading}
        if not reading:
            return False
        assert self._consumer is not None
        try:
            messages = self._consumer.poll_records(self.records_max, _POLL_WAIT_S)
        except AuthorizationError:
            raise
        except StreamsError as error:  # a changelog is gone, and its leader may create it again
            self._ranges.log_problem("polls", str(error))
            for followed in reading.values():
                self._wait_for_range(followed)
            self._ranges_at_s = self._host.monotonic_s() + _WAITING_INTERVAL_S
            return False
        for partition in self._consumer.pop_out_of_range_positions().keys() & reading.keys():
            self._wait_for_range(reading.pop(partition))
            self._ranges_at_s = 0.0
        batches = group_by_partition(messages, {partition.topic for partition in self._stores})
        positions = self._consumer.next_offsets(reading)
        for partition, followed in reading.items():
            position = positions.get(partition, followed.logged_store.changelog_position)
            if position > followed.logged_store.changelog_position:
                try:
                    self.load_records(followed, batches.get(partition, []), position)
                except StoreCorrupted as damage:
                    self._rebuild_corrupt(followed, damage)
        return len(messages) >= self.records_max

    def load_records(self, followed: FollowedStore[T], messages: list[Any], position: int) -> None:
        """Write changelog records into a store, with a checkpoint at `position`."""
        logged, changelog = followed.logged_store, followed.changelog
        assert changelog is not None
        if logged.is_source_topic:  # what is not processed yet is not in the table either
            position = min(position, changelog.end_offset)
            messages = logged.select_rows_and_count_others(messages, position, changelog.end_offset)
        reached = position >= changelog.end_offset
        since_ms = changelog.fetched_at_ms if reached else followed.since_ms
        if messages:
            logged.committed_end = messages[-1].offset() + 1
        self._before_batch()
        logged.hide_from_readers()
        logged.store.replay_changelog(
            to_changelog_entries(messages),
            logged.create_checkpoint(position, changelog.topic_id, since_ms),
        )
        logged.changelog_position = position
        followed.written_ms = since_ms
        followed.is_durable = False
        self.followed_records += len(messages)
        loaded = (followed.task.name, position, len(messages), changelog.end_offset)
        self._notify_listener("on_batch_loaded", logged, *loaded)
        if reached:
            self._note_end_or_rebuild(followed, changelog)
            if logged.is_source_topic:
                self._stop_reading(followed)
        followed.show_to_readers()

    def _note_end_or_rebuild(self, followed: FollowedStore[T], changelog: ChangelogRange) -> None:
        """Note the time at which a store has seen all, or rebuild it if that took too long.

        By then tombstones that it was still to read may have been compacted away.
        """
        age_ms = self._host.now_ms() - followed.since_ms if followed.since_ms else 0
        if are_tombstones_expired(age_ms, changelog.tombstone_retention_ms):
            reason = f"it was behind for longer than {changelog.partition} keeps deletions"
            if not followed.is_from_scratch:
                self._rebuild_store(followed, reason)
                return
            log.warning("%s (delete.retention.ms): some may have been missed", reason)
        followed.since_ms = changelog.fetched_at_ms
        followed.is_from_scratch = False
        followed.corruption_count = 0

    def _rebuild_corrupt(self, followed: FollowedStore[T], damage: StoreCorrupted) -> None:
        """Let a corrupt store wait until its changelog can fill it again.

        Raises: the corruption if that has not helped several times before.
        """
        followed.corruption_count += 1
        if followed.corruption_count > _CORRUPTIONS_MAX:
            raise damage
        self._rebuild_store(followed, str(damage))

    def _rebuild_store(self, followed: FollowedStore[T], reason: str) -> None:
        """Let a store wait until its changelog can fill it again; it is cleared then, not before.

        A changelog that has lost something can't: the store may be the only copy of that.
        """
        self._wait_for_range(followed)
        followed.logged_store.hide_from_readers()
        followed.logged_store.damage = reason
        followed.is_durable = True
        followed.logged_store.changelog_position = 0
        self._ranges_at_s = 0.0

    def _clear_store(self, followed: FollowedStore[T], reason: str) -> None:
        """Clear a store, so that its whole changelog is read again, and log the reason."""
        what = f"store {followed.logged_store.store.name!r} of standby task {followed.task.name}"
        log.warning("%s is rebuilt from its changelog: %s", what, reason)
        followed.logged_store.clear_store()
        followed.logged_store.changelog_position = 0

    def _wait_for_range(self, followed: FollowedStore[T]) -> None:
        """Let a store wait until the range of its changelog has been fetched again."""
        self._stop_reading(followed)
        followed.changelog = None

    def _stop_reading(self, followed: FollowedStore[T]) -> None:
        """Stop reading the changelog of a store, if it is read."""
        if followed.is_reading:
            assert self._consumer is not None
            self._consumer.remove_partitions([followed.logged_store.changelog])
            followed.is_reading = False

    def _make_positions_durable(self) -> None:
        """Make durable what stores have got since the last time."""
        self._durable_at_s = self._host.monotonic_s() + _DURABLE_INTERVAL_S
        for followed in list(self._stores.values()):
            if not followed.is_durable:
                try:
                    followed.logged_store.store.finish_restore()
                    followed.is_durable = True
                except StoreCorrupted as damage:
                    self._rebuild_corrupt(followed, damage)

    def _notify_listener(self, event: str, logged: LoggedStore, *what: Any) -> None:
        """Call a method of the listener, and log what it raises."""
        notify_listener(self._listener, event, logged.changelog, logged.store.name, *what)
