"""Test a running worker: what it knows of standbys while its threads change, and how it ends."""

from __future__ import annotations

from concurrent.futures import Executor
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from streams.common.host import SystemHost
from streams.common.topic_partitions import Partition
from streams.processes import running as running_module
from streams.processes.lifecycle import ApplicationLifecycle
from streams.processes.running import RunningApp
from streams.processes.worker_threads import WorkerThreads
from streams.runtime.threads.worker_control import WorkerControl
from tests.processes import HANG_LIMIT_S
from tests.unit.streams.runtime.world import build_counting_topology

LOG = Partition("log", 0)


class Host(SystemHost):
    """A host whose threads have ended as soon as they are started."""

    def spawn_thread(self, name: str, target: Any) -> Any:
        return SimpleNamespace(join=lambda *_: None, is_alive=lambda: False)


def create_loop(end: int) -> Any:
    admin = SimpleNamespace(fetch_latest_offsets=lambda partitions, timeout_s: {LOG: end})
    return SimpleNamespace(admin=admin, standby_tasks=[], assignment=None)


@pytest.fixture
def sampling(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Provide a list of what each sampler of changelogs is made of."""
    made: list[Any] = []
    monkeypatch.setattr(running_module, "ChangelogEnds", lambda *parts: made.append(parts))
    return made


@pytest.fixture
def thread() -> Any:
    """Provide the thread of a worker, which has ended."""
    return SimpleNamespace(
        name="thread 0",
        loop=create_loop(1),
        start_thread=lambda: None,
        join_thread=lambda timeout_s: None,
        is_alive=lambda: False,
    )


@pytest.fixture
def config() -> Any:
    """Provide the settings of a worker."""
    return SimpleNamespace(
        stuck_after_ms=1,
        state_cleanup_delay_ms=1,
        shutdown_timeout_ms=HANG_LIMIT_S * 1000,
        session_timeout_ms=1,
        group_protocol="classic",
        bootstrap_servers="x:1",
    )


@pytest.fixture
def running(thread: Any, config: Any) -> RunningApp:
    """Provide a worker with one thread, and with what reads the standbys of its store."""
    host = Host()
    worker: Any = SimpleNamespace(
        host=host,
        config=config,
        directory=None,
        stop=host.create_event(),
        topology=build_counting_topology(),
        control=WorkerControl(),
        open_connection=None,
        outage=None,
        global_tables=None,
    )
    ended = host.create_event()
    lifecycle = ApplicationLifecycle(1, stop=worker.stop, all_threads_ended=ended)
    threads = WorkerThreads(worker, lifecycle, 0)
    threads.running.append(thread)
    return RunningApp(worker, threads, lifecycle, ended, bootstrap_servers="x:1")


def test_the_ends_of_changelogs_are_asked_for_by_the_loop_that_runs_now(
    thread: Any, running: RunningApp, sampling: list[Any]
) -> None:
    assert running.local_stores.measure_standby_lags("c") == {}
    fetch_ends = sampling[0][0]
    assert fetch_ends([LOG], 1.0) == {LOG: 1}
    thread.loop = create_loop(2)
    assert fetch_ends([LOG], 1.0) == {LOG: 2}


@pytest.mark.parametrize("protocol", ["classic", "streams"])
@pytest.mark.parametrize("leaves", [False, True])
def test_a_worker_that_remains_in_a_streams_group_says_what_that_is_worth(
    config: Any,
    running: RunningApp,
    caplog: pytest.LogCaptureFixture,
    protocol: str,
    leaves: bool,
) -> None:
    config.group_protocol = protocol
    running.close(leave_group=leaves)
    told = [each.getMessage() for each in caplog.records if "another member" in each.getMessage()]
    assert len(told) == (not leaves and protocol == "streams")


def test_a_query_is_answered_until_the_server_has_stopped(
    running: RunningApp, sampling: list[Any]
) -> None:
    running.local_stores.measure_standby_lags("c")
    executor: Executor = sampling[0][3]
    sampled: list[int] = []
    exits = ExitStack()
    # The server of queries, which ends the requests that it has.
    exits.callback(lambda: sampled.append(executor.submit(int).result(HANG_LIMIT_S)))
    running.start_threads(exits)
    running.close()
    assert sampled == [0]
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(int)
