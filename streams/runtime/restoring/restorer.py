"""Restore the stores of tasks, and follow those of standby tasks, beside the tasks that run.

The stream thread hands tasks in (`add_tasks`), gets each back when it is restored
(`wait_and_pop_restored_tasks`), or takes it back before (`withdraw_tasks`). Standby tasks are
handed in (`follow_tasks`) and stay until they are taken back (`stop_following`, `promote_tasks`).
In between the stores belong to the restorer, which lets its reader do one batch after another, and
its follower only while the reader has nothing to do: on a thread of its own, or within
`wait_and_pop_restored_tasks`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from typing import Generic

from streams.common.host import Event, Host, SpawnedThread
from streams.errors import StreamsError
from streams.runtime.restoring.changelog_follower import FOLLOW_INTERVAL_S, ChangelogFollower
from streams.runtime.restoring.changelog_ranges import RETRY_S
from streams.runtime.restoring.changelog_reader import StoreChangelogReader
from streams.runtime.restoring.progress import SuspendReason
from streams.runtime.restoring.restoration import HasMore, T, TaskRestoration
from streams.runtime.restoring.restorer_timings import RestorerTimings

_LIVENESS_CHECK_S = 1.0
_THREAD_ENDED = "the thread that restores stores has ended: its error was printed before"


class Restorer(Generic[T]):
    """Restores the stores of tasks with `reader`, and lets `follower` follow those of standbys.

    With `use_own_thread` it works on a thread of its own, once there is something to do; else in
    `wait_and_pop_restored_tasks` and `continue_following`. Kafka Streams' counterpart is
    DefaultStateUpdater.
    """

    def __init__(
        self,
        reader: StoreChangelogReader[T],
        follower: ChangelogFollower[T],
        host: Host,
        *,
        use_own_thread: bool = False,
    ) -> None:
        self.reader = reader
        self.follower = follower
        self.timings = RestorerTimings(host.monotonic_s)
        self._host = host
        self._use_own_thread = use_own_thread
        self._commands: deque[Callable[[], None]] = deque()
        self._wake: Event = host.create_event()
        self._thread: SpawnedThread | None = None
        self._closed = False

    def add_tasks(self, tasks: Iterable[T]) -> None:
        """Add tasks whose stores are to be restored, each from the store's position."""
        jobs = [TaskRestoration(task, list(task.stores.logged.values())) for task in tasks]
        for job in jobs:
            if not job.waiting_stores:
                self.reader.restored.add_task(job.task)
        behind = {job.task.name: job for job in jobs if job.waiting_stores}
        if behind:
            self._add_command(lambda: self.reader.register_tasks(behind))

    def follow_tasks(self, tasks: Collection[T]) -> None:
        """Follow the changelogs of standby tasks, each from its stores' positions."""
        if tasks:
            self._add_command(lambda: self.follower.register_tasks(tasks))

    def continue_following(self) -> None:
        """Follow with one batch where there is no thread for that; raise what went wrong."""
        if self._thread is None:
            self._run_commands_and_batch()
        self.reader.restored.raise_failure_if_any()

    def wait_and_pop_restored_tasks(self, wait_s: float = 0.0) -> list[T]:
        """Return the tasks that were restored since the last call, after at most `wait_s` for one.

        Raises: what went wrong: StreamsError where a changelog is not what it should be, StateError
        or OSError where a store can't be written.
        """
        has_more = self._thread is None and self._run_commands_and_batch()
        if not has_more:
            self.reader.restored.wait_for_task(wait_s)
        return self.reader.restored.pop_tasks_or_raise_failure()

    def withdraw_tasks(self, task_names: Collection[str]) -> list[T]:
        """Stop restoring the named tasks, and return them, those already restored included.

        Their stores keep what has been restored, and go on from there another time.
        """
        given: list[T] = []

        def withdraw_tasks() -> None:
            with ExitStack() as steps:  # both, whatever the first raises
                steps.callback(self.reader.withdraw_tasks, task_names, given)
                # A promotion that has failed may have left its task with the follower.
                self.follower.withdraw_tasks(task_names, given, SuspendReason.PROMOTED)

        self.run_between_batches(withdraw_tasks)
        return given

    def stop_following(self, task_names: Collection[str]) -> list[T]:
        """Stop following the named standby tasks, and return them, their positions durable."""
        given: list[T] = []
        self.run_between_batches(
            lambda: self.follower.withdraw_tasks(task_names, given, SuspendReason.MIGRATED)
        )
        return given

    def promote_tasks(self, task_names: Collection[str]) -> None:
        """Stop following the named standby tasks, which are to be restored and become active.

        The stream thread, whose other tasks go on, does not wait for that: the stores are free when
        what it hands in next is done, and `withdraw_tasks` has returned at the latest.
        """
        self._add_command(
            lambda: self.follower.withdraw_tasks(task_names, [], SuspendReason.PROMOTED)
        )

    def run_between_batches(self, action: Callable[[], None]) -> None:
        """Run an action between two batches, when all that was handed in before has arrived.

        What it raises on the restorer's own thread is raised where tasks are taken.
        Raises: StreamsError if that thread has ended.
        """
        done = self._host.create_event()

        def run_and_notify() -> None:
            try:
                action()
            finally:
                done.set()

        self._commands.append(run_and_notify)
        if self._thread is None:
            self._run_commands_and_raise_first_failure()
        else:
            self._wake.set()
            while not done.wait(_LIVENESS_CHECK_S):
                if not self._thread.is_alive():
                    raise StreamsError(_THREAD_ENDED)

    def close(self) -> None:
        """End the restorer; the stores of tasks that were not withdrawn are left as they are."""
        self._closed = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        with ExitStack() as steps:
            steps.callback(self.follower.close)
            self.reader.close()

    def _add_command(self, command: Callable[[], None]) -> None:
        """Let a command run between two batches, on the restorer's thread if it has one."""
        self._commands.append(command)
        self._wake.set()
        if self._use_own_thread and self._thread is None:
            self._thread = self._host.spawn_thread(self.reader.name, self._do_batches_until_closed)

    def _do_batches_until_closed(self) -> None:
        """Do batches on the restorer's own thread until the restorer is closed."""
        try:
            while not self._closed:
                self._wake.clear()
                if not self._run_commands_and_batch():
                    self._wake.wait(self._idle_wait_s())
        finally:
            if not self._closed:  # a panic of rocksdict's is no Exception
                self.reader.restored.add_failure(StreamsError(_THREAD_ENDED))

    def _idle_wait_s(self) -> float | None:
        """Return for how long to wait for a command when there is nothing to do at once."""
        if self.reader.is_restoring:
            return RETRY_S
        return FOLLOW_INTERVAL_S if self.follower.is_following else None

    def _run_commands_and_batch(self) -> HasMore:
        """Run the commands, do a batch, and return whether there is more to do at once.

        Standbys wait for restores: those keep records from being processed.
        """
        try:
            self._run_commands_and_raise_first_failure()
            if self.reader.restored.has_failed:
                return False
            timings = self.timings
            return timings.run_timed_batch(
                self.reader.restore_batch,
                timings.restore,
                lambda: self.reader.restored_records,
            ) or timings.run_timed_batch(
                self.follower.follow_batch,
                timings.follow,
                lambda: self.follower.followed_records,
            )
        except Exception as error:
            self._restart_after_failure(error)
            return False

    def _restart_after_failure(self, failure: Exception) -> None:
        """Let all stores be read on from their own positions, and pass the failure on.

        Consumers are ahead of the stores: of the batch that was polled, records are lost.
        """
        try:
            self.reader.restart_reading()
            self.follower.restart_reading()
        finally:
            self.reader.restored.add_failure(failure)

    def _run_commands_and_raise_first_failure(self) -> None:
        """Run all commands, whatever fails, and raise the first failure."""
        failure: Exception | None = None
        while self._commands:
            try:
                self._commands.popleft()()
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure
