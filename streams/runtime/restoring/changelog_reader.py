"""Read changelogs into the stores that are behind them.

Theory of operation. Tasks are added with all of their stores waiting; each call of
`restore_batch` does one batch. A store is

    state      event                              next       what happens
    waiting    its changelog's range is known     behind     read on from where it is; cleared first
                                                             if it may have missed writes
    waiting    the changelog has lost something   -          refused, and left as it is
    waiting    it is at the end                   restored
    behind     a batch                            behind     loaded, then its position after it
    behind     position has reached the end       restored   made durable
    behind     the changelog lost its position    waiting
    any        corrupt                            waiting    it alone is to be cleared
    any        withdrawn                          -          made durable: continues there next time

and a task is restored when all of its stores are. The end is the changelog's high watermark,
fetched after the committed offsets were found stable, and committed records alone are read: what an
open transaction wrote is waited for, since it may yet be committed. The end is judged by position
and not by record count, so that markers and aborted records at the end don't hang the restore
(decision 10).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic

from state.errors import StoreCorrupted
from streams.common.host import Host
from streams.common.topic_partitions import Partition
from streams.errors import BrokerUnavailable
from streams.membership.broker_outage import IsOverdue, create_overdue_check
from streams.runtime.changelogs.changelog import (
    ChangelogRange,
    are_tombstones_expired,
    find_restore_start,
    find_source_restore_start,
)
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.clients.interfaces import AdminClient, ConsumerClient
from streams.runtime.restoring.changelog_ranges import ChangelogRangeFetcher
from streams.runtime.restoring.progress import RestoreListener, RestoreProgress, notify_listener
from streams.runtime.restoring.restoration import (
    HasMore,
    RestoredTasks,
    StoreRestoration,
    T,
    TaskRestoration,
    group_by_partition,
    log_restored_store,
    to_changelog_entries,
    try_make_withdrawn_store_durable,
)

log = logging.getLogger(__name__)

_POLL_WAIT_S = 0.02
_NEAR_END_RECORDS, _NEAR_END_WAIT_S = 1_000, 0.005
"""With so few records left, or markers alone, nothing more is waited for to fill a batch."""
_STALL_LOG_AFTER_S = 1.0
_FIRST_LOG_AFTER_S = 2.0
_LOG_INTERVAL_S = 5.0
_CORRUPTIONS_MAX = 3
"""How often a task's stores may be corrupt; the machine is taken to be damaged after that."""


class StoreChangelogReader(Generic[T]):
    """Restores the stores of tasks from their changelogs with one consumer.

    `is_transactional`: whether changelogs are written in transactions. `timeout_ms` is how long a
    restore may make no progress, by `is_overdue`, before BrokerUnavailable is raised.
    `accepts_loss`: a store is also restored from a changelog whose first records are gone.
    `before_batch` is called before each batch is loaded: a test may end the process there.
    `check_topics` raises the reason why changelogs can't be found any more. Kafka Streams'
    counterpart is StoreChangelogReader.
    """

    records_max: int = 10_000
    """The most records of changelogs that are polled, and loaded, at a time."""

    def __init__(
        self,
        name: str,
        consumer: ConsumerClient,
        admin: AdminClient,
        host: Host,
        *,
        is_transactional: bool,
        timeout_ms: int,
        is_overdue: IsOverdue | None = None,
        accepts_loss: bool = False,
        listener: RestoreListener | None = None,
        before_batch: Callable[[], None] = lambda: None,
        check_topics: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self._consumer = consumer
        self._is_overdue = is_overdue or create_overdue_check(host)
        self._ranges = ChangelogRangeFetcher(
            *(name, admin, host),
            timeout_ms=timeout_ms,
            is_overdue=self._is_overdue,
            check_topics=check_topics,
        )
        self._host = host
        self._is_transactional = is_transactional
        self._accepts_loss = accepts_loss
        self._timeout_s = timeout_ms / 1000
        self._listener = listener or RestoreListener()
        self._before_batch = before_batch
        self.restored_records = 0  # since the start
        self.progress: tuple[RestoreProgress, ...] = ()
        """That of the stores that are behind, as of the last report."""
        self.restored: RestoredTasks[T] = RestoredTasks(host)  # until they are taken
        self._tasks: dict[str, TaskRestoration[T]] = {}
        self._stores_behind: dict[Partition, StoreRestoration[T]] = {}
        self._log_at_s = 0.0

    @property
    def is_restoring(self) -> bool:
        """Return whether any task has stores that are not restored."""
        return bool(self._tasks)

    def register_tasks(self, tasks: Mapping[str, TaskRestoration[T]]) -> None:
        """Register tasks, by name, whose stores the next batches restore."""
        self._tasks.update(tasks)

    def restore_batch(self) -> HasMore:
        """Restore the next batch of records, and return whether there is more to do at once."""
        if any(job.waiting_stores for job in self._tasks.values()):
            self._start_restores()
        if self._stores_behind:
            self._poll_and_load_batch()
            self._log_progress_or_raise_if_stalled()
            return True
        return False

    def withdraw_tasks(self, task_names: Collection[str], withdrawn: list[T]) -> None:
        """Stop restoring the named tasks, and append them to `withdrawn`, those restored included.

        What their stores have restored is made durable.
        Raises: the first error of a store, once all tasks are withdrawn.
        """
        failure: Exception | None = None
        for name in task_names:
            job = self._tasks.pop(name, None)
            if job is None:
                continue
            withdrawn.append(job.task)
            for replay in [self._stores_behind[partition] for partition in job.changelogs_behind]:
                self._stop_reading(replay)
                failure = failure or try_make_withdrawn_store_durable(replay.logged_store)
                self._notify_listener(
                    "on_restore_suspended", replay.logged_store, replay.record_count
                )
        self.progress = tuple(each for each in self.progress if each.task not in task_names)
        withdrawn += self.restored.remove_tasks(task_names)
        if failure is not None:
            raise failure

    def restart_reading(self) -> None:
        """Restore all stores of the tasks that wait from their own positions again.

        Records that were polled are lost. A store that was restored is found to be at the end.
        """
        for replay in list(self._stores_behind.values()):
            self._stop_reading(replay)
        for job in self._tasks.values():
            job.waiting_stores = list(job.task.stores.logged.values())

    def close(self) -> None:
        """Close the consumer; the stores of tasks that were not withdrawn are left as they are."""
        self._consumer.close()

    def _start_restores(self) -> None:
        """Fetch the changelogs' ranges, and begin to restore each waiting store at its position."""
        ranges = self._ranges.fetch_ranges(
            [s for job in self._tasks.values() for s in job.waiting_stores]
        )
        if ranges is None:
            return
        positions: dict[Partition, int] = {}
        try:
            for job in list(self._tasks.values()):
                stores, job.waiting_stores = job.waiting_stores, []
                for logged in stores:
                    try:
                        if self._start_store_if_behind(job, logged, ranges[logged.changelog]):
                            positions[logged.changelog] = logged.changelog_position
                    except StoreCorrupted as damage:
                        self._rebuild_store(job, logged, damage)
                self._finish_task_if_restored(job)
        finally:  # a store that is refused leaves those before it behind, and they are unassigned
            if positions:
                self._consumer.add_partitions(positions)

    def _start_store_if_behind(
        self,
        task_restoration: TaskRestoration[T],
        logged_store: LoggedStore,
        changelog: ChangelogRange,
    ) -> bool:
        """Start to restore a store from its position, and return whether it is behind."""
        checkpoint = logged_store.read_checkpoint()
        logged_store.apply_disk_checkpoint(checkpoint, changelog.topic_id, changelog.end_offset)
        task_restoration.task.offset_proof.check_store(logged_store)
        if logged_store.is_source_topic:
            end_offset = min(changelog.end_offset, logged_store.committed_source_offset)
            changelog = changelog._replace(end_offset=end_offset)
            start = find_source_restore_start(
                *(logged_store.store.name, checkpoint, changelog, self._accepts_loss),
                rebuild_reason=logged_store.rebuild_reason,
                first_offset=logged_store.first_source_offset,
            )
        else:
            start = find_restore_start(
                logged_store.store.name,
                checkpoint,
                changelog,
                required_offset=task_restoration.task.required_changelog_positions.get(
                    logged_store.changelog, 0
                ),
                committed_id_hash=logged_store.committed_id_hash,
                is_transactional=self._is_transactional,
                expiry=logged_store.expiry,
                accepts_loss=self._accepts_loss,
                rebuild_reason=logged_store.rebuild_reason,
            )
        logged_store.note_changelog_start(changelog, is_accepted=bool(start.loss))
        if start.loss:
            log.error("%s. It goes on without them (changelog_out_of_range)", start.loss)
        if start.rebuild_reason is not None:
            self._clear_store(task_restoration, logged_store, start.rebuild_reason)
        logged_store.changelog_topic_id, logged_store.changelog_position = (
            changelog.topic_id,
            start.position,
        )
        if start.position >= changelog.end_offset:
            return False
        now_s = self._host.monotonic_s()
        is_from_scratch = checkpoint is None or start.rebuild_reason is not None
        replay = StoreRestoration(
            *(task_restoration, logged_store, changelog, start.position, start.since_ms),
            *(is_from_scratch, now_s, now_s),
        )
        self._stores_behind[logged_store.changelog] = replay
        task_restoration.changelogs_behind.add(logged_store.changelog)
        if not self.progress:
            self._log_at_s = now_s + _FIRST_LOG_AFTER_S
        self._notify_listener(
            "on_restore_start", logged_store, start.position, changelog.end_offset
        )
        return True

    def _clear_store(
        self, task_restoration: TaskRestoration[T], logged_store: LoggedStore, reason: str
    ) -> None:
        """Clear a store, so that its whole changelog is read again, and log the reason."""
        name, task = logged_store.store.name, task_restoration.task.name
        log.warning("store %r of task %s is rebuilt from its changelog: %s", name, task, reason)
        logged_store.clear_store()

    def _poll_and_load_batch(self) -> None:
        """Poll one batch of changelog records and load it into the stores that are behind."""
        topics = {partition.topic for partition in self._stores_behind}
        # At most as many records as there can be are polled, so that no wait follows the last.
        left_count = sum(
            r.changelog.end_offset - r.logged_store.changelog_position
            for r in self._stores_behind.values()
        )
        wait_s = _POLL_WAIT_S if left_count > _NEAR_END_RECORDS else _NEAR_END_WAIT_S
        batches = group_by_partition(
            self._consumer.poll_records(min(left_count, self.records_max), wait_s), topics
        )
        for partition in (
            self._consumer.pop_out_of_range_positions().keys() & self._stores_behind.keys()
        ):
            replay = self._stores_behind[partition]
            self._stop_reading(replay)
            replay.task_restoration.waiting_stores.append(replay.logged_store)
        positions = self._consumer.next_offsets(self._stores_behind)
        for partition, replay in list(self._stores_behind.items()):
            position = positions.get(partition, replay.logged_store.changelog_position)
            try:
                if position > replay.logged_store.changelog_position:
                    self._load_records(replay, batches.get(partition, []), position)
                if replay.logged_store.changelog_position >= replay.changelog.end_offset:
                    self._finish_store(replay)
            except StoreCorrupted as damage:
                self._stop_reading(replay)
                self._rebuild_store(replay.task_restoration, replay.logged_store, damage)

    def _load_records(
        self, restoration: StoreRestoration[T], messages: list[Any], position: int
    ) -> None:
        """Write changelog records into a store, with a checkpoint at `position`."""
        logged, changelog = restoration.logged_store, restoration.changelog
        if logged.is_source_topic:  # a record that is not processed yet is not restored either
            position = min(position, changelog.end_offset)
            messages = logged.select_rows_and_count_others(messages, position, changelog.end_offset)
        # At the end the store contains all that was there when the end was fetched.
        since_ms = (
            changelog.fetched_at_ms if position >= changelog.end_offset else restoration.since_ms
        )
        if messages:
            logged.committed_end = messages[-1].offset() + 1
            restoration.task_restoration.task.offset_proof.check_store(logged)
        self._before_batch()
        logged.store.replay_changelog(
            to_changelog_entries(messages),
            logged.create_checkpoint(position, changelog.topic_id, since_ms),
        )
        logged.note_restored(position, len(messages))
        restoration.progressed_at_s = self._host.monotonic_s()
        restoration.record_count += len(messages)
        self.restored_records += len(messages)
        self._notify_listener("on_batch_restored", logged, position, len(messages))

    def _finish_store(self, restoration: StoreRestoration[T]) -> None:
        """Finish the restore of a store that has reached the end of its changelog.

        If the restore took so long that tombstones may be gone, it starts again from an empty
        store.
        """
        logged, job = restoration.logged_store, restoration.task_restoration
        age_ms = self._host.now_ms() - restoration.since_ms if restoration.since_ms else 0
        if are_tombstones_expired(age_ms, restoration.changelog.tombstone_retention_ms):
            reason = f"the restore took longer than {logged.changelog} keeps deletions"
            if not restoration.is_from_scratch:
                self._stop_reading(restoration)
                logged.damage = reason
                job.waiting_stores.append(logged)
                return
            log.warning("%s (delete.retention.ms): some may have been missed", reason)
        logged.store.finish_restore()
        self._stop_reading(restoration)
        if restoration.record_count:
            log_restored_store(restoration.snapshot_progress(self._host.monotonic_s()))
        self._notify_listener("on_restore_end", logged, restoration.record_count)
        self._finish_task_if_restored(job)

    def _rebuild_store(
        self,
        task_restoration: TaskRestoration[T],
        logged_store: LoggedStore,
        damage: StoreCorrupted,
    ) -> None:
        """Let a corrupt store wait for a rebuild; raise the corruption if several have not helped.

        It is cleared when its changelog is known to have everything (`_start_store_if_behind`).
        """
        task_restoration.corruption_count += 1
        if task_restoration.corruption_count > _CORRUPTIONS_MAX:
            raise damage
        logged_store.damage = str(damage)
        task_restoration.waiting_stores.append(logged_store)

    def _stop_reading(self, restoration: StoreRestoration[T]) -> None:
        """Stop reading the changelog of a store."""
        partition = restoration.logged_store.changelog
        del self._stores_behind[partition]
        restoration.task_restoration.changelogs_behind.discard(partition)
        self._consumer.remove_partitions([partition])

    def _finish_task_if_restored(self, task_restoration: TaskRestoration[T]) -> None:
        """Make a task available as restored if none of its stores is left to restore."""
        if not (task_restoration.waiting_stores or task_restoration.changelogs_behind):
            del self._tasks[task_restoration.task.name]
            self.restored.add_task(task_restoration.task)

    def _log_progress_or_raise_if_stalled(self) -> None:
        """Update and log the progress, and raise BrokerUnavailable if it stalls."""
        now_s = self._host.monotonic_s()
        self.progress = tuple(
            replay.snapshot_progress(now_s) for replay in self._stores_behind.values()
        )
        if now_s < self._log_at_s or not self._stores_behind:
            return
        self._log_at_s = now_s + _LOG_INTERVAL_S
        still_since_s = max(each.progressed_at_s for each in self._stores_behind.values())
        for store in self.progress:
            log.info("%s", store)
        if self._is_overdue(still_since_s, self._timeout_s):
            where = ", ".join(
                f"{s.changelog} at {s.next_offset} of {s.end_offset}" for s in self.progress
            )
            still_s = now_s - still_since_s
            raise BrokerUnavailable(f"a restore has stood still for {still_s:.0f} s: {where}")
        if now_s - still_since_s > _STALL_LOG_AFTER_S:
            waiting = ", ".join(str(each.changelog) for each in self.progress)
            log.info("waiting for an open transaction to end, or for the broker, on %s", waiting)

    def _notify_listener(self, event: str, logged_store: LoggedStore, *what: Any) -> None:
        """Call a method of the restore listener, and log what it raises."""
        notify_listener(
            self._listener, event, logged_store.changelog, logged_store.store.name, *what
        )
