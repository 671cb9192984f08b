"""Restore the stores of tasks beside the tasks that run.

The stream thread hands tasks in (`add_tasks`), gets each back when it is restored
(`take_restored_tasks`), or takes it back before (`withdraw_tasks`). In between its stores belong to
the restorer, which lets its reader do one batch after another: on a thread of its own, or within
`take_restored_tasks`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Generic

from streams.common.host import Event, Host, SpawnedThread
from streams.runtime.changelog_ranges import RETRY_S
from streams.runtime.changelog_reader import StoreChangelogReader
from streams.runtime.restoration import T, TaskRestoration


class Restorer(Generic[T]):
    """Restores the stores of tasks with `reader`, and gives the tasks back.

    With `use_own_thread` it works on a thread of its own, once there is something to do; else in
    `take_restored_tasks`. Kafka Streams' counterpart is DefaultStateUpdater.
    """

    def __init__(
        self, reader: StoreChangelogReader[T], host: Host, *, use_own_thread: bool = False
    ) -> None:
        self.reader = reader
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
            self._commands.append(lambda: self.reader.add_tasks(behind))
            self._wake.set()
            if self._use_own_thread and self._thread is None:
                self._thread = self._host.spawn_thread(self.reader.name, self._run_until_closed)

    def take_restored_tasks(self, wait_s: float = 0.0) -> list[T]:
        """Return the tasks that were restored since the last call, after at most `wait_s` for one.

        Raises: what went wrong: StreamsError where a changelog is not what it should be, StateError
        or OSError where a store can't be written.
        """
        has_more = self._thread is None and self._run_once()
        if not has_more:
            self.reader.restored.wait_for_task(wait_s)
        return self.reader.restored.take_tasks()

    def withdraw_tasks(self, task_names: Collection[str]) -> list[T]:
        """Stop restoring the named tasks, and return them, those already restored included.

        Their stores keep what has been restored, and go on from there another time.
        """
        given: list[T] = []
        done = self._host.create_event()

        def withdraw_and_notify() -> None:
            try:
                self.reader.withdraw_tasks(task_names, given)
            finally:
                done.set()

        self._commands.append(withdraw_and_notify)  # runs after the tasks that were added before
        if self._thread is None:
            self._run_commands()
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
        self.reader.close()

    def _run_until_closed(self) -> None:
        """Restore batches on the restorer's own thread until the restorer is closed."""
        while not self._closed:
            self._wake.clear()
            if not self._run_once():
                self._wake.wait(RETRY_S if self.reader.is_restoring else None)

    def _run_once(self) -> bool:
        """Run the commands, restore a batch, and return whether there is more to do at once."""
        try:
            self._run_commands()
            return not self.reader.restored.has_failed and self.reader.restore_batch()
        except Exception as error:
            self.reader.restored.add_failure(error)
            return False

    def _run_commands(self) -> None:
        while self._commands:
            self._commands.popleft()()
