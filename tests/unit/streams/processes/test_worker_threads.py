"""Test the threads of a worker that are added and removed: what fails leaves none behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from streams.common.host import SystemHost
from streams.errors import ConfigError, NotClosed
from streams.processes.lifecycle import ApplicationLifecycle, LifecycleState
from streams.processes.worker_threads import WorkerThreads
from streams.runtime.threads import stream_thread
from streams.runtime.threads.thread_state import ThreadState
from streams.runtime.threads.worker_resources import WorkerResources
from streams.settings.config import StreamsConfig
from tests.processes import HANG_LIMIT_S, wait_until


class Loop:
    """Stands in for the loop of a thread, which joins, runs, and ends when it is stopped."""

    def __init__(self, stop: Any, on_state_change: Any, may_end: threading.Event) -> None:
        self._stop, self._on_state_change, self._may_end = stop, on_state_change, may_end
        self.is_closed = False

    def run_until_stopped(self) -> None:
        self._on_state_change(ThreadState.REBALANCING)
        self._on_state_change(ThreadState.RUNNING)
        self._stop.wait(HANG_LIMIT_S)
        self._may_end.wait(HANG_LIMIT_S)

    def close(self) -> None:
        self.is_closed = True


class Host(SystemHost):
    """Starts threads unless it is told not to."""

    can_spawn = True

    def spawn_thread(self, name: str, target: Any) -> Any:
        if not self.can_spawn:
            raise RuntimeError("can't start new thread")
        return super().spawn_thread(name, target)


class Worker:
    """Holds the threads of a worker with loops that do nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host = Host()
        self.stop, self.all_ended = threading.Event(), threading.Event()
        self.loops: list[Loop] = []
        self.may_end = threading.Event()
        self.may_end.set()
        self.is_client_refused = False
        self.lifecycle = ApplicationLifecycle(1, stop=self.stop, all_threads_ended=self.all_ended)
        nothing: Any = None
        resources = WorkerResources(
            process_id="p",
            topology=nothing,
            config=StreamsConfig(),
            clients=nothing,
            directory=nothing,
            host=self.host,
            open_connection=nothing,
            stop=self.stop,
            metadata_bytes_max=1,
        )
        monkeypatch.setattr(stream_thread, "create_stream_loop", self._create_loop)
        self.threads = WorkerThreads(resources, self.lifecycle, 1)
        self.threads.running[0].start_thread()

    def _create_loop(self, worker: Any, number: int, *, on_state_change: Any, **_: Any) -> Any:
        if self.is_client_refused:
            raise OSError("too many open files")
        self.loops.append(Loop(worker.stop, on_state_change, self.may_end))
        return self.loops[-1]

    def names(self) -> list[str]:
        return [each.name for each in self.threads.running]

    def wait_for_running(self) -> None:
        self.lifecycle.wait_for(LifecycleState.RUNNING, HANG_LIMIT_S)

    def end(self) -> None:
        self.may_end.set()
        self.stop.set()
        for thread in self.threads.running:
            thread.join_thread(HANG_LIMIT_S)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    worker = Worker(monkeypatch)
    worker.wait_for_running()
    yield worker
    worker.end()


@pytest.mark.parametrize("is_created", [False, True])
def test_a_thread_that_can_not_be_added_is_none_of_the_worker(
    worker: Worker, is_created: bool
) -> None:
    if is_created:
        worker.host.can_spawn = False
    else:
        worker.is_client_refused = True
    with pytest.raises((OSError, RuntimeError)):
        worker.threads.add_thread(lambda: None)
    assert worker.names() == ["thread 0"]
    assert all(loop.is_closed for loop in worker.loops[1:])
    worker.host.can_spawn, worker.is_client_refused = True, False
    assert worker.threads.add_thread(lambda: None) == "thread 1"
    added = worker.threads.running[1]
    wait_until(lambda: added.state is ThreadState.RUNNING, what="the thread does not run")
    worker.wait_for_running()
    worker.end()
    assert worker.all_ended.is_set()


def test_a_worker_ends_that_could_not_add_a_thread(
    worker: Worker,
) -> None:
    worker.is_client_refused = True
    with pytest.raises(OSError, match="too many"):
        worker.threads.add_thread(lambda: None)
    worker.end()
    assert worker.all_ended.is_set()


@pytest.mark.parametrize("is_added", [False, True])
def test_a_thread_that_ends_after_nobody_waits_for_it_is_forgotten(
    worker: Worker, is_added: bool
) -> None:
    worker.threads.add_thread(lambda: None)
    first, second = worker.threads.running
    wait_until(lambda: second.state is ThreadState.RUNNING, what="the thread does not run")
    worker.may_end.clear()
    with pytest.raises(NotClosed, match="thread 1 has not ended"):
        worker.threads.remove_thread(0.0, lambda: None)
    with pytest.raises(ConfigError, match="at least one thread"):  # the other one leaves already
        worker.threads.remove_thread(0.0, lambda: None)
    worker.may_end.set()
    second.join_thread(HANG_LIMIT_S)
    seen: list[list[str]] = []
    if is_added:
        name = worker.threads.add_thread(lambda: seen.append(worker.names()))
        assert (name, worker.names()) == ("thread 1", ["thread 0", "thread 1"])
    else:
        with pytest.raises(ConfigError, match="at least one thread"):
            worker.threads.remove_thread(0.0, lambda: seen.append(worker.names()))
        assert worker.names() == ["thread 0"]
    assert seen == [["thread 0", "thread 1"]]
    assert first.is_alive()
    worker.wait_for_running()


def test_an_application_runs_when_all_threads_run_but_those_that_were_removed(
    worker: Worker,
) -> None:
    lifecycle = worker.lifecycle
    lifecycle.add_thread(7)
    lifecycle.note_thread_state_and_derive_own(7, ThreadState.REBALANCING)
    lifecycle.note_thread_state_and_derive_own(0, ThreadState.REBALANCING)
    lifecycle.note_thread_state_and_derive_own(7, ThreadState.ENDED)
    lifecycle.note_thread_state_and_derive_own(0, ThreadState.RUNNING)
    assert lifecycle.state == "RUNNING"
