"""Hold the stream threads of a worker, which may be added and removed while it runs.

A thread takes the lowest number that no other one has: with it goes its place in the group. It ends
when the worker does, or before, when it alone is told to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from streams.common.host import Event, Host
from streams.errors import ConfigError, NotClosed
from streams.processes.lifecycle import ApplicationLifecycle
from streams.runtime.threads.commit import CommitStep
from streams.runtime.threads.stream_thread import StreamThread
from streams.runtime.threads.thread_state import ThreadState
from streams.runtime.threads.worker_resources import WorkerResources

_WAIT_S = 0.05
"""The seconds after which a thread that waits looks at the other one of its two events."""


class ThreadStop:
    """Tells one thread to stop: when it was set itself, or when the worker stops."""

    def __init__(self, worker_stop: Event, host: Host) -> None:
        self._worker_stop = worker_stop
        self._own = host.create_event()
        self._monotonic_s = host.monotonic_s

    def is_set(self) -> bool:
        return self._worker_stop.is_set() or self._own.is_set()

    def set(self) -> None:
        self._own.set()

    def clear(self) -> None:
        self._own.clear()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for either event, and return whether one is set."""
        deadline_s = None if timeout is None else self._monotonic_s() + timeout
        while not self.is_set():
            left_s = _WAIT_S if deadline_s is None else deadline_s - self._monotonic_s()
            if left_s <= 0:
                break
            self._worker_stop.wait(min(left_s, _WAIT_S))
        return self.is_set()


class WorkerThreads:
    """Creates the stream threads of a worker, `thread_count` at first; `running` are those now.

    They report to the application's `lifecycle`; `on_step` is called at each step of a commit.
    """

    def __init__(
        self,
        worker: WorkerResources,
        lifecycle: ApplicationLifecycle,
        thread_count: int,
        on_step: Callable[[CommitStep], None] = lambda step: None,
    ) -> None:
        self._worker = worker
        self._lifecycle = lifecycle
        self._on_step = on_step
        self._lock = worker.host.create_lock()
        self._stops: dict[StreamThread, ThreadStop] = {}
        self._numbers: dict[StreamThread, int] = {}
        self._leaving: set[StreamThread] = set()
        self.running: list[StreamThread] = []
        """The threads, in the order in which they were added; others read this list."""
        for _ in range(thread_count):
            self.create_and_register_thread()

    def create_and_register_thread(self) -> StreamThread:
        """Create a thread with the lowest free number, without starting it."""
        number = min({*range(len(self.running) + 1)} - {*self._numbers.values()})
        stop = ThreadStop(self._worker.stop, self._worker.host)
        thread = StreamThread(
            replace(self._worker, stop=stop),
            number,
            handler=self._worker.config.uncaught_exception_handler,
            on_state_change=partial(self._lifecycle.note_thread_state_and_derive_own, number),
            on_failure=self._lifecycle.fail_application,
            on_step=self._on_step,
        )
        # Its clients have been created by now: what failed before that has left nothing behind.
        self._lifecycle.add_thread(number)
        self._stops[thread], self._numbers[thread] = stop, number
        self.running.append(thread)
        return thread

    def add_thread(self, on_ended: Callable[[], None]) -> str:
        """Create a thread, start it, and return its name; `on_ended` is as for `remove_thread`."""
        with self._lock:
            self._forget_ended_threads(on_ended)
            thread = self.create_and_register_thread()
            try:
                thread.start_thread()
            except BaseException:
                self._forget_thread(thread)
                thread.loop.close()
                raise
            return thread.name

    def remove_thread(self, timeout_s: float | None, on_ended: Callable[[], None]) -> str:
        """Tell the thread that was added last to commit and leave, and return its name.

        `on_ended` is called when it has ended and is still among the `running` ones. Raises
        ConfigError for the last thread that has not been told so; NotClosed after `timeout_s`
        seconds (shutdown_timeout_ms by default), when it ends later, and another call is for
        another thread.
        """
        if timeout_s is None:
            timeout_s = self._worker.config.shutdown_timeout_ms / 1000
        with self._lock:
            self._forget_ended_threads(on_ended)
            remaining = [each for each in self.running if each not in self._leaving]
            if len(remaining) <= 1:
                raise ConfigError("a worker has at least one thread: close it instead")
            thread = remaining[-1]
            self._leaving.add(thread)
            self._stops[thread].set()
            thread.join_thread(timeout_s)
            if thread.is_alive():
                raise NotClosed(f"{thread.name} has not ended after {timeout_s:g} s")
            on_ended()
            self._forget_thread(thread)
            return thread.name

    def _forget_ended_threads(self, on_ended: Callable[[], None]) -> None:
        """Forget the threads that were told to leave, and ended when nobody waited."""
        ended = [each for each in self._leaving if each.state is ThreadState.ENDED]
        if ended:
            on_ended()
        for thread in ended:
            self._forget_thread(thread)

    def _forget_thread(self, thread: StreamThread) -> None:
        """Forget a thread that does not run, so that its number is free again."""
        self.running.remove(thread)
        self._lifecycle.remove_thread(self._numbers.pop(thread))
        del self._stops[thread]
        self._leaving.discard(thread)
