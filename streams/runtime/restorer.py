"""Restore stores from their changelogs beside the tasks that run.

Theory of operation. The stream thread hands tasks in (`add_tasks`), gets each back when it is
restored (`take_restored_tasks`), or takes it back before (`withdraw_tasks`). In between its stores
belong to the restorer, which does one batch in each `restore_batch`: on a thread of its own, or
within `take_restored_tasks`. A store is

    state      event                              next       what happens
    waiting    its changelog's range is known     behind     read on from where it is; cleared first
                                                             if it could lie (`find_restore_start`)
    waiting    it is at the end                   restored
    behind     a batch                            behind     loaded, then its position after it
    behind     position has reached the end       restored   made durable
    behind     the changelog lost its position    waiting
    any        corrupt                            waiting    cleared: this store and no other
    any        withdrawn                          -          made durable: continues there next time

and a task is restored when all of its stores are. The end is the changelog's high watermark,
fetched after the committed offsets were found stable, and committed records alone are read: what an
open transaction wrote is waited for, since it may yet be committed. The end is judged by position
and not by record count, so that markers and aborted records at the end don't hang the restore
(decision 10).

Kafka Streams' counterparts are StoreChangelogReader and DefaultStateUpdater.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic

from state.errors import Corrupt
from state.store import Checkpoint
from streams.errors import OutcomeUnknown, StreamsError
from streams.positions import Partition
from streams.runtime.changelog import Changelog, begin_at, begin_in_source, is_over, tombstones_ms
from streams.runtime.host import Event, Host, Spawned
from streams.runtime.interfaces import AdminClient, ConsumerClient
from streams.runtime.logged import LoggedStore
from streams.runtime.progress import RestoreListener, StoreProgress
from streams.runtime.replay import Job, Replay, T, by_partition

log = logging.getLogger(__name__)

_WAIT_S = 0.02
_RECORDS_NEAR, _WAIT_NEAR_S = 1_000, 0.005
"""With so few records left, or markers alone, nothing more is waited for to fill a batch."""
_RETRY_S = 0.2
_STILL_S = 1.0
_FIRST_REPORT_S = 2.0
_REPORT_EVERY_S = 5.0
_DAMAGED_MAX = 3
"""How often a task's stores may be found corrupt before the machine is taken to be damaged."""


class Restorer(Generic[T]):
    """Restores the stores of tasks from their changelogs with one consumer.

    `is_transactional`: whether changelogs are written in transactions. With `use_own_thread` it
    works on a thread of its own, once there is something to do; else in `take_restored_tasks`.
    `timeout_ms` is how long a restore may make no progress, or the broker be away, before
    StreamsError is raised. `before_batch` is called before each batch is loaded: a test may end the
    process there.
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
        transactions: bool,
        timeout_ms: int,
        beside: bool = False,
        listener: RestoreListener | None = None,
        reached: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._consumer = consumer
        self._admin = admin
        self._host = host
        self._transactions = transactions
        self._timeout_s = timeout_ms / 1000
        self._beside = beside
        self._listener = listener or RestoreListener()
        self._reached = reached
        self.records = 0
        """The number of records restored since the start."""
        self.progress: tuple[StoreProgress, ...] = ()
        """The progress of the stores that are behind, as of the last report."""
        self._jobs: dict[str, Job[T]] = {}
        self._replays: dict[Partition, Replay[T]] = {}
        self._topics: dict[str, tuple[str, int | None]] = {}
        """The id and the tombstone retention of each changelog topic."""
        self._ready: deque[T] = deque()
        self._failure: Exception | None = None
        self._retry_at = 0.0
        self._trouble_since: float | None = None
        self._report_at = 0.0
        self._inbox: deque[Callable[[], None]] = deque()
        self._wake: Event = host.event()
        self._arrived: Event = host.event()
        self._thread: Spawned | None = None
        self._closed = False

    def begin(self, tasks: Iterable[T]) -> None:
        """Add tasks whose stores are to be restored, each from the store's position."""
        jobs = [Job(task, list(task.stores.values())) for task in tasks]
        self._ready += [job.task for job in jobs if not job.asked]
        behind = {job.task.name: job for job in jobs if job.asked}
        if behind:
            self._inbox.append(lambda: self._jobs.update(behind))
            self._wake.set()
            if self._beside and self._thread is None:
                self._thread = self._host.spawn(self._name, self._run)

    def ready(self, wait_s: float = 0.0) -> list[T]:
        """Return the tasks that were restored since the last call, after at most `wait_s` for one.

        Raises: what went wrong: StreamsError where a changelog is not what it should be, StateError
        or OSError where a store can't be written.
        """
        more = self._thread is None and self._turn()
        if not (more or self._ready or self._failure):
            self._arrived.wait(wait_s)
        self._arrived.clear()
        caught_up = [self._ready.popleft() for _ in range(len(self._ready))]
        failure = self._failure
        if failure is not None and not caught_up:
            self._failure = None
            raise failure
        return caught_up

    def withdraw(self, names: Collection[str]) -> list[T]:
        """Take tasks back, those already restored included, and return them.

        Their stores keep what has been restored, and go on from there another time.
        """
        given: list[T] = []
        done = self._host.event()

        def withdraw_and_notify() -> None:
            try:
                self._give_back(names, given)
            finally:
                done.set()

        self._inbox.append(withdraw_and_notify)  # runs after the tasks that were added before
        if self._thread is None:
            self._serve()
        else:
            self._wake.set()
            done.wait()
        return given

    def close(self) -> None:
        """End the restorer; the stores of tasks that were not withdrawn are left as they are."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._consumer.close()

    def step(self) -> bool:
        """Restore the next batch of records, and return whether there is more to do at once."""
        if any(job.asked for job in self._jobs.values()):
            self._ask()
        if self._replays:
            self._batch()
            self._report()
            return True
        return False

    def _run(self) -> None:
        """Restore until the restorer is closed: the body of its own thread."""
        while not self._closed:
            self._wake.clear()
            if not self._turn():
                self._wake.wait(_RETRY_S if self._jobs else None)

    def _turn(self) -> bool:
        """Run the commands, restore a batch, and return whether there is more to do at once."""
        try:
            self._serve()
            return self._failure is None and self.step()
        except Exception as error:
            self._failure = error
            self._arrived.set()
            return False

    def _serve(self) -> None:
        while self._inbox:
            self._inbox.popleft()()

    def _ask(self) -> None:
        """Fetch the changelogs' ranges, and start each waiting store from where it is."""
        if self._host.monotonic_s() < self._retry_at:
            return
        try:
            ranges = self._changelogs([s for job in self._jobs.values() for s in job.asked])
        except OutcomeUnknown as error:
            self._retry(error)
            return
        self._trouble_since = None
        positions: dict[Partition, int] = {}
        for job in list(self._jobs.values()):
            stores, job.asked = job.asked, []
            for logged in stores:
                try:
                    if self._set_out(job, logged, ranges[logged.changelog]):
                        positions[logged.changelog] = logged.position
                except Corrupt as damage:
                    self._rebuild(job, logged, damage)
            self._finish(job)
        if positions:
            self._consumer.add(positions)

    def _changelogs(self, stores: list[LoggedStore]) -> dict[Partition, Changelog]:
        """Fetch offsets, id and tombstone retention of each store's changelog from the brokers."""
        now_ms = self._host.now_ms()
        partitions = [logged.changelog for logged in stores]
        # The end is fetched first: the store is restored up to what was there at that moment.
        ends, starts = self._admin.latest(partitions), self._admin.earliest(partitions)
        # Id and settings are known of a store that is still open: a rollback is to be quick.
        new_topics = sorted({logged.changelog.topic for logged in stores if not logged.topic_id})
        if new_topics:
            ids, settings = (
                self._admin.topic_ids(new_topics),
                self._admin.topic_settings(new_topics),
            )
            for topic in new_topics:
                self._topics[topic] = (ids[topic], tombstones_ms(settings[topic]))
        return {p: Changelog(p, starts[p], ends[p], *self._topics[p.topic], now_ms) for p in ends}

    def _retry(self, error: OutcomeUnknown) -> None:
        """Schedule another attempt while no broker answers; nothing is lost by it.

        Raises: StreamsError after `timeout_ms` without an answer.
        """
        now_s = self._host.monotonic_s()
        if self._trouble_since is None:
            self._trouble_since = now_s
            log.warning("%s asks again: %s", self._name, error)
        if now_s - self._trouble_since > self._timeout_s:
            raise StreamsError(f"no answer for {self._timeout_s:g} s: {error}") from error
        self._retry_at = now_s + _RETRY_S

    def _set_out(self, job: Job[T], logged: LoggedStore, changelog: Changelog) -> bool:
        """Start to restore a store from its position, and return whether it is behind."""
        checkpoint = logged.store.checkpoint()
        if logged.from_source:
            changelog = changelog._replace(end=min(changelog.end, logged.committed))
            start = begin_in_source(checkpoint, changelog)
        else:
            start = begin_at(
                logged.store.name,
                checkpoint,
                changelog,
                required=job.task.required.get(logged.changelog, 0),
                transactions=self._transactions,
            )
        if start.rebuilt is not None:
            self._empty(job, logged, start.rebuilt)
        logged.topic_id, logged.position = changelog.topic_id, start.position
        if start.position >= changelog.end:
            return False
        now_s = self._host.monotonic_s()
        is_from_scratch = checkpoint is None or start.rebuilt is not None
        replay = Replay(
            job, logged, changelog, start.position, start.since_ms, is_from_scratch, now_s, now_s
        )
        self._replays[logged.changelog] = replay
        job.behind.add(logged.changelog)
        if not self.progress:
            self._report_at = now_s + _FIRST_REPORT_S
        self._tell("on_restore_start", logged, start.position, changelog.end)
        return True

    def _empty(self, job: Job[T], logged: LoggedStore, reason: str) -> None:
        """Clear a store, so that its whole changelog is read again, and log the reason."""
        name, task = logged.store.name, job.task.name
        log.warning("store %r of task %s is rebuilt from its changelog: %s", name, task, reason)
        logged.store.clear()

    def _batch(self) -> None:
        """Poll one batch of changelog records and load it into the stores that are behind."""
        topics = {partition.topic for partition in self._replays}
        # At most as many records as there can be are polled, so that no wait follows the last.
        left_count = sum(r.changelog.end - r.logged.position for r in self._replays.values())
        wait_s = _WAIT_S if left_count > _RECORDS_NEAR else _WAIT_NEAR_S
        batches = by_partition(
            self._consumer.take(min(left_count, self.records_max), wait_s), topics
        )
        for partition in self._consumer.strayed().keys() & self._replays.keys():
            replay = self._replays[partition]
            self._leave(replay)
            replay.job.asked.append(replay.logged)
        positions = self._consumer.positions(self._replays)
        for partition, replay in list(self._replays.items()):
            position = positions.get(partition, replay.logged.position)
            try:
                if position > replay.logged.position:
                    self._load(replay, batches.get(partition, []), position)
                if replay.logged.position >= replay.changelog.end:
                    self._arrive(replay)
            except Corrupt as damage:
                self._leave(replay)
                self._rebuild(replay.job, replay.logged, damage)

    def _load(self, replay: Replay[T], messages: list[Any], position: int) -> None:
        """Write changelog records into a store, with a checkpoint at `position`."""
        logged, changelog = replay.logged, replay.changelog
        if logged.from_source:  # a record that is not processed yet is not restored either
            position = min(position, changelog.end)
            messages = [m for m in messages if m.offset() < position and m.key() is not None]
        # At the end the store contains all that was there when the end was fetched.
        since_ms = changelog.asked_ms if position >= changelog.end else replay.since_ms
        self._reached()
        # A timestamp of 0 in a store is negative in its changelog (`LoggedStore.log_changes`).
        entries = (
            (m.key(), m.value(), time_ms if (time_ms := m.timestamp()[1]) > 0 else 0)
            for m in messages
        )
        logged.store.replay(entries, Checkpoint(position, changelog.topic_id, since_ms))
        logged.position = position
        replay.moved_s = self._host.monotonic_s()
        replay.records += len(messages)
        self.records += len(messages)
        self._tell("on_batch_restored", logged, position, len(messages))

    def _arrive(self, replay: Replay[T]) -> None:
        """Finish a store that has reached the end of its changelog.

        If the restore took so long that tombstones may be gone, it starts again from an empty
        store.
        """
        logged, job = replay.logged, replay.job
        age_ms = self._host.now_ms() - replay.since_ms if replay.since_ms else 0
        if is_over(age_ms, replay.changelog.tombstones_ms):
            reason = f"the restore took longer than {logged.changelog} keeps deletions"
            if not replay.from_scratch:
                self._leave(replay)
                self._empty(job, logged, reason)
                job.asked.append(logged)
                return
            log.warning("%s (delete.retention.ms): some may have been missed", reason)
        logged.store.caught_up()
        self._leave(replay)
        self._tell("on_restore_end", logged, replay.records)
        self._finish(job)

    def _rebuild(self, job: Job[T], logged: LoggedStore, damage: Corrupt) -> None:
        """Clear a corrupt store, so that its changelog restores it.

        Raises: the corruption if that has not helped several times before.
        """
        job.damaged += 1
        if job.damaged > _DAMAGED_MAX:
            raise damage
        self._empty(job, logged, str(damage))
        job.asked.append(logged)

    def _leave(self, replay: Replay[T]) -> None:
        """Stop reading the changelog of a store."""
        partition = replay.logged.changelog
        del self._replays[partition]
        replay.job.behind.discard(partition)
        self._consumer.remove([partition])

    def _finish(self, job: Job[T]) -> None:
        """Make a task available as restored if none of its stores is left to restore."""
        if not (job.asked or job.behind):
            del self._jobs[job.task.name]
            self._ready.append(job.task)
            self._arrived.set()

    def _give_back(self, names: Collection[str], given: list[T]) -> None:
        """Append the named tasks to `withdrawn`, with their stores made durable as they are."""
        for name in names:
            job = self._jobs.pop(name, None)
            if job is None:
                continue
            given.append(job.task)
            for replay in [self._replays[partition] for partition in job.behind]:
                self._leave(replay)
                try:
                    replay.logged.store.caught_up()
                except Corrupt as damage:
                    log.warning("%s", damage)  # the next restore of the store finds it again
                self._tell("on_restore_suspended", replay.logged, replay.records)
        self.progress = tuple(each for each in self.progress if each.task not in names)
        for task in [task for task in self._ready if task.name in names]:
            self._ready.remove(task)
            given.append(task)

    def _report(self) -> None:
        """Log the progress every few seconds, and what is waited for.

        Raises: StreamsError where there was no progress for too long.
        """
        now_s = self._host.monotonic_s()
        self.progress = tuple(replay.progress(now_s) for replay in self._replays.values())
        if now_s < self._report_at or not self._replays:
            return
        self._report_at = now_s + _REPORT_EVERY_S
        still_s = now_s - max(replay.moved_s for replay in self._replays.values())
        for store in self.progress:
            log.info("%s", store)
        if still_s > self._timeout_s:
            where = ", ".join(f"{s.changelog} at {s.position} of {s.end}" for s in self.progress)
            raise StreamsError(f"a restore has stood still for {still_s:.0f} s: {where}")
        if still_s > _STILL_S:
            waiting = ", ".join(str(each.changelog) for each in self.progress)
            log.info("waiting for an open transaction to end, or for the broker, on %s", waiting)

    def _tell(self, event: str, logged: LoggedStore, *what: Any) -> None:
        """Call a method of the restore listener, and log what it raises."""
        try:
            getattr(self._listener, event)(logged.changelog, logged.store.name, *what)
        except Exception:
            log.exception("the restore listener's %s", event)
