"""The states of threads and of the application: which may follow which, and who hears of it."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from streams.common.host import SystemHost
from streams.errors import StreamsError
from streams.processes.lifecycle import ApplicationLifecycle, LifecycleState
from streams.processes.running import RunningApp
from streams.processes.worker_threads import WorkerThreads
from streams.runtime.threads import stream_thread
from streams.runtime.threads.stream_thread import StreamThread
from streams.runtime.threads.thread_state import ThreadState, create_thread_state_machine
from streams.runtime.threads.worker_control import WorkerControl
from streams.settings.uncaught_exceptions import UncaughtExceptionResponse
from tests.processes import HANG_LIMIT_S

CREATED, REBALANCING, RUNNING, ENDED = ThreadState
THREAD_STATES_AFTER = {
    CREATED: {REBALANCING, ENDED},
    REBALANCING: {REBALANCING, RUNNING, ENDED},
    RUNNING: {REBALANCING, ENDED},
    ENDED: set(),
}
A_WAY_TO = {
    CREATED: [],
    REBALANCING: [REBALANCING],
    RUNNING: [REBALANCING, RUNNING],
    ENDED: [ENDED],
}


def created(threads: int = 1) -> ApplicationLifecycle:
    return ApplicationLifecycle(
        threads, stop=threading.Event(), all_threads_ended=threading.Event()
    )


@pytest.mark.parametrize("after", ThreadState)
@pytest.mark.parametrize("before", ThreadState)
def test_a_thread_changes_its_state_by_the_table_only(
    before: ThreadState, after: ThreadState
) -> None:
    heard: list[ThreadState] = []
    machine = create_thread_state_machine("thread 0", heard.append)
    for state in A_WAY_TO[before]:
        machine.change_state(state)
    heard.clear()
    if after in THREAD_STATES_AFTER[before]:
        machine.change_state(after)
        assert heard == [machine.state] == [after]
        return
    with pytest.raises(RuntimeError, match=f"thread 0 is {before}: it can't become {after}"):
        machine.change_state(after)
    assert (machine.state, heard) == (before, [])


def test_a_loop_that_reports_a_state_out_of_order_ends_its_thread_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def create_loop(*args: Any, on_state_change: Any, **settings: Any) -> Any:
        return SimpleNamespace(run_until_stopped=lambda: on_state_change(RUNNING))

    monkeypatch.setattr(stream_thread, "create_stream_loop", create_loop)
    worker: Any = SimpleNamespace(host=SystemHost(), global_tables=None)
    errors: list[Exception] = []
    states: list[ThreadState] = []
    thread = StreamThread(
        worker,
        0,
        handler=UncaughtExceptionResponse.SHUTDOWN_CLIENT,
        on_state_change=states.append,
        on_failure=errors.append,
        on_step=lambda step: None,
    )
    thread.start_thread()
    thread.join_thread(HANG_LIMIT_S)
    assert (states, thread.state) == ([ENDED], ENDED)
    assert "thread 0 is CREATED: it can't become RUNNING" in str(errors[0])


def test_an_application_runs_when_all_of_its_threads_run() -> None:
    lifecycle = created(threads=2)
    assert lifecycle.state == "CREATED"
    for number, state, derived in [
        (0, REBALANCING, "REBALANCING"),
        (0, RUNNING, "REBALANCING"),
        (1, REBALANCING, "REBALANCING"),
        (1, RUNNING, "RUNNING"),
        (0, REBALANCING, "REBALANCING"),
        (0, RUNNING, "RUNNING"),
    ]:
        lifecycle.note_thread_state_and_derive_own(number, state)
        assert lifecycle.state == derived
    lifecycle.wait_for(LifecycleState.RUNNING, 0)


def test_an_application_does_not_run_before_a_thread_has_joined_the_group() -> None:
    with pytest.raises(RuntimeError, match="the application is CREATED: it can't become RUNNING"):
        created().note_thread_state_and_derive_own(0, RUNNING)


def test_a_shutdown_ends_when_all_is_closed_however_often() -> None:
    lifecycle = created()
    lifecycle.note_thread_state_and_derive_own(0, REBALANCING)
    assert lifecycle.try_begin_shutdown()
    assert lifecycle.try_begin_shutdown()  # a second close that runs beside the first
    lifecycle.note_thread_state_and_derive_own(0, RUNNING)
    assert lifecycle.state == "PENDING_SHUTDOWN"
    lifecycle.note_thread_state_and_derive_own(0, ENDED)
    lifecycle.finish_shutdown()
    lifecycle.finish_shutdown()
    assert lifecycle.state == "NOT_RUNNING"
    assert not lifecycle.try_begin_shutdown()


@pytest.mark.parametrize("is_closing", [False, True])
def test_an_error_ends_the_application_once_its_threads_have_ended(is_closing: bool) -> None:
    lifecycle = created(threads=2)
    lifecycle.note_thread_state_and_derive_own(0, REBALANCING)
    if is_closing:
        lifecycle.try_begin_shutdown()
    first = StreamsError("first")
    lifecycle.fail_application(first)
    lifecycle.note_thread_state_and_derive_own(0, ENDED)
    assert lifecycle.state == "PENDING_ERROR"
    lifecycle.note_thread_state_and_derive_own(1, ENDED)
    assert lifecycle.state == "ERROR"
    lifecycle.wait_for(LifecycleState.ERROR, 0)
    with pytest.raises(StreamsError, match="first"):
        lifecycle.wait_for(LifecycleState.RUNNING, 0)


def test_who_waits_for_the_error_s_state_waits_until_the_threads_have_ended() -> None:
    lifecycle = created()
    lifecycle.note_thread_state_and_derive_own(0, REBALANCING)
    lifecycle.fail_application(StreamsError("first"))
    lifecycle.wait_for(LifecycleState.PENDING_ERROR, 0)
    ending = threading.Timer(0.05, lifecycle.note_thread_state_and_derive_own, (0, ENDED))
    ending.start()
    lifecycle.wait_for(LifecycleState.ERROR, HANG_LIMIT_S)
    ending.join()


@pytest.mark.parametrize("is_closing", [False, True])
def test_an_error_after_all_threads_have_ended_in_order_ends_the_application(
    is_closing: bool,
) -> None:
    """Global tables may fail when a stop has ended the stream threads."""
    lifecycle = created(threads=2)
    lifecycle.note_thread_state_and_derive_own(0, REBALANCING)
    if is_closing:
        lifecycle.try_begin_shutdown()
    lifecycle.note_thread_state_and_derive_own(0, ENDED)
    lifecycle.note_thread_state_and_derive_own(1, ENDED)
    lifecycle.fail_application(StreamsError("first"))
    assert lifecycle.state == "ERROR"
    lifecycle.wait_for(LifecycleState.ERROR, 0)
    with pytest.raises(StreamsError, match="first"):
        lifecycle.finish_shutdown()


def test_an_error_after_the_end_leaves_the_application_in_its_last_state() -> None:
    """Global tables may fail when the stream threads have ended after an error."""
    lifecycle = created()
    lifecycle.fail_application(StreamsError("first"))
    lifecycle.note_thread_state_and_derive_own(0, ENDED)
    lifecycle.fail_application(StreamsError("second"))
    assert lifecycle.state == "ERROR"
    with pytest.raises(StreamsError, match="first"):
        lifecycle.finish_shutdown()


class NoThreads(SystemHost):
    """A host that refuses threads."""

    def spawn_thread(self, name: str, target: Any) -> Any:
        raise AssertionError(f"{name} was started")


def build_running_app(host: NoThreads) -> RunningApp:
    config = SimpleNamespace(
        stuck_after_ms=1,
        state_cleanup_delay_ms=1,
        shutdown_timeout_ms=1,
        session_timeout_ms=1,
        group_protocol="classic",
        bootstrap_servers="x:1",
    )
    worker: Any = SimpleNamespace(
        host=host,
        config=config,
        directory=None,
        stop=host.create_event(),
        topology=None,
        control=WorkerControl(),
    )
    return RunningApp(
        worker,
        WorkerThreads(worker, created(), 0),
        created(),
        host.create_event(),
        bootstrap_servers="x:1",
    )


def test_a_wait_for_a_state_that_there_is_not_lists_the_states() -> None:
    with pytest.raises(ValueError, match=r"no state 'NOPE': it is one of CREATED, REBALANCING, RU"):
        build_running_app(NoThreads()).wait_for("NOPE")


def test_a_running_app_starts_nothing_until_it_is_told_to() -> None:
    before = threading.enumerate()
    running = build_running_app(NoThreads())
    assert running.state == "CREATED"
    assert threading.enumerate() == before
    with pytest.raises(AssertionError, match="global-tables was started"):
        running.start_threads(None)  # type: ignore[arg-type]


def test_a_listener_is_told_each_state_and_what_it_raises_changes_nothing() -> None:
    told: list[tuple[str, str]] = []

    def listen(state: LifecycleState, before: LifecycleState) -> None:
        told.append((before, state))
        raise ValueError("of the listener")

    stop, ended = SystemHost().create_event(), SystemHost().create_event()
    lifecycle = ApplicationLifecycle(1, stop=stop, all_threads_ended=ended, listener=listen)
    lifecycle.note_thread_state_and_derive_own(0, REBALANCING)
    lifecycle.note_thread_state_and_derive_own(0, RUNNING)
    assert lifecycle.try_begin_shutdown()
    lifecycle.note_thread_state_and_derive_own(0, ENDED)
    lifecycle.finish_shutdown()
    assert told == [
        ("CREATED", "REBALANCING"),
        ("REBALANCING", "RUNNING"),
        ("RUNNING", "PENDING_SHUTDOWN"),
        ("PENDING_SHUTDOWN", "NOT_RUNNING"),
    ]
