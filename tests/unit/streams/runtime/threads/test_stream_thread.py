"""Test when a stream thread begins with its loop, and when with another one."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from streams.common.host import SystemHost
from streams.membership.instance_fencing import IdentityReplaced, InstanceFencing, WorkerIds
from streams.runtime.counters import ThreadCounters
from streams.runtime.threads import stream_thread
from streams.runtime.threads.stream_thread import StreamThread
from streams.runtime.threads.thread_state import ThreadState
from streams.runtime.threads.watchdog import Watchdog
from streams.runtime.threads.worker_resources import WorkerResources
from streams.settings.uncaught_exceptions import UncaughtExceptionResponse
from tests.processes import HANG_LIMIT_S


class Copying:
    """Stands in for global tables that are copied when the test says so."""

    def __init__(self) -> None:
        self.waiting, self.copied = threading.Event(), threading.Event()

    def wait_until_caught_up(self, stop: threading.Event) -> bool:
        self.waiting.set()
        return self.copied.wait(HANG_LIMIT_S)


class Loop:
    """Stands in for a stream loop that runs until the test ends it."""

    turn_count, record_origin = 0, ""
    counters = ThreadCounters()
    tasks: dict[str, Any] = {}  # noqa: RUF012  nobody writes it

    def __init__(self) -> None:
        self.running, self.end = threading.Event(), threading.Event()

    def run_until_stopped(self) -> None:
        self.running.set()
        assert self.end.wait(HANG_LIMIT_S)


def test_a_thread_that_waits_for_global_tables_is_not_taken_for_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Test that a long wait for global tables is no hang, for which the worker would be killed."""
    loop, copying, host = Loop(), Copying(), SystemHost()
    monkeypatch.setattr(stream_thread, "create_stream_loop", lambda *args, **settings: loop)
    worker: Any = SimpleNamespace(host=host, global_tables=copying, stop=host.create_event())
    ended = threading.Event()
    thread = StreamThread(
        worker,
        0,
        handler=UncaughtExceptionResponse.SHUTDOWN_CLIENT,
        on_state_change=lambda state: ended.set() if state is ThreadState.ENDED else None,
        on_failure=lambda error: pytest.fail(str(error)),
        on_step=lambda step: None,
    )
    watchdog = Watchdog([thread], host, host.create_event(), stuck_after_s=0.0)

    def looked() -> list[bool]:
        watchdog.inspect_threads()
        watchdog.inspect_threads()
        return [doing.is_stuck for doing in watchdog.activities.values()]

    thread.start_thread()
    assert copying.waiting.wait(HANG_LIMIT_S)
    assert looked() == []
    copying.copied.set()
    assert loop.running.wait(HANG_LIMIT_S)
    assert looked() == [True]
    loop.end.set()
    assert ended.wait(HANG_LIMIT_S)


def test_a_thread_goes_on_with_the_other_ids_of_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that the handler of uncaught exceptions is not called, and no wait comes before."""
    host, created = SystemHost(), list[tuple[str, str]]()

    class ReplacedLoop(Loop):
        def run_until_stopped(self) -> None:
            if created[-1][0] == "one":
                fencing.count_fencing_and_renew_identity("app-one-0", "member-1")
                fencing.count_fencing_and_renew_identity("app-one-0", "member-2")
                raise IdentityReplaced
            self.end.set()

    def create_loop(worker: WorkerResources, *args: object, **settings: object) -> Loop:
        created.append((worker.process_id, worker.directory_id))
        return ReplacedLoop()

    fencing = InstanceFencing(
        WorkerIds("one", "first"), lambda: WorkerIds("two", "second"), threading.Lock()
    )
    monkeypatch.setattr(stream_thread, "create_stream_loop", create_loop)
    unused: Any = None
    worker = WorkerResources(
        process_id="one",
        directory_id="first",
        topology=unused,
        config=unused,
        clients=unused,
        directory=unused,
        host=host,
        open_connection=unused,
        stop=host.create_event(),
        metadata_bytes_max=0,
        fencing=fencing,
    )
    thread = StreamThread(
        worker,
        0,
        handler=lambda error: pytest.fail(str(error)),
        on_state_change=lambda state: None,
        on_failure=lambda error: pytest.fail(str(error)),
        on_step=lambda step: None,
    )
    thread.start_thread()
    thread.join_thread(HANG_LIMIT_S)
    assert created == [("one", "first"), ("two", "second")]
    assert thread.state is ThreadState.ENDED
    assert thread.sum_counters()["replaced_threads"] == 0
