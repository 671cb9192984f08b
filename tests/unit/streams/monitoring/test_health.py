from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection

import orjson
import pytest

from streams import App, serdes
from streams.common.host import SystemHost
from streams.errors import ConfigError, StreamsError
from streams.monitoring.health import (
    Health,
    RestoringStore,
    StandbyStore,
    ThreadHealth,
    WaitingTask,
    judge_health,
)
from streams.monitoring.http_endpoint import HttpEndpoint, HttpResponse
from streams.monitoring.metrics import WorkerCollector, render_prometheus_text
from streams.processes.endpoints import start_endpoints
from streams.runtime.threads.watchdog import ThreadActivity, ThreadLocation
from streams.settings.config import load_config
from tests.processes import HANG_LIMIT_S, HOST

NOW_S = 1_000.0
THREAD = ThreadHealth(
    name="thread 0",
    state="RUNNING",
    doing="broker call",
    what="DataConsumer.take",
    seconds=0.0,
    record="",
    stuck=False,
    stack=(),
    tasks={"0_0": "RUNNING", "0_1": "RESTORING"},
    restoring=(RestoringStore("0_1", "counts", 1_200, 300.0, 4.0),),
    standby=(StandbyStore("0_2", "counts", 17), StandbyStore("0_3", "counts", None)),
    last_commit_ms=59_000,
    trouble="",
    trouble_s=0.0,
    silent_s=0.0,
)


def judged(
    thread: ThreadHealth = THREAD,
    state: str = "RUNNING",
    error: Exception | None = None,
    doing: ThreadActivity | None = None,
) -> Health:
    seen = {} if doing is None else {"thread 0": doing}
    return judge_health(state, error, [thread], seen, stuck_after_s=30, now_s=NOW_S)


def stuck(where: ThreadLocation) -> Health:
    thread = replace(THREAD, stuck=True, doing=where.value)
    return judged(
        thread, doing=ThreadActivity(where, "look_up", NOW_S - 40, "in[0]@7", is_stuck=True)
    )


@pytest.mark.parametrize("state", ["CREATED", "REBALANCING", "RUNNING"])
def test_a_worker_that_gets_on_is_healthy_and_live(state: str) -> None:
    health = judged(state=state)
    assert (health.healthy, health.live, health.why) == (True, True, [])


@pytest.mark.parametrize("state", ["PENDING_ERROR", "ERROR", "PENDING_SHUTDOWN", "NOT_RUNNING"])
def test_a_worker_that_ends_is_neither(state: str) -> None:
    health = judged(state=state, error=StreamsError("disk is full"))
    assert (health.healthy, health.live) == (False, False)
    assert health.why == [f"state {state}: disk is full"]


def test_a_stuck_function_makes_it_neither_and_is_named() -> None:
    health = stuck(ThreadLocation.USER)
    assert (health.healthy, health.live) == (False, False)
    [why] = health.why
    assert why == (
        "thread 0 has been in the user's function look_up for 40.0 s, with record in[0]@7"
    )


def test_a_broker_that_is_away_makes_it_unhealthy_and_leaves_it_live() -> None:
    for health in (
        stuck(ThreadLocation.BROKER),
        judged(replace(THREAD, silent_s=31.0)),
        judged(replace(THREAD, trouble="commit_transaction: timed out", trouble_s=31.0)),
    ):
        assert (health.healthy, health.live) == (False, True)
        assert len(health.why) == 1


def test_a_thread_that_waits_to_be_replaced_is_unhealthy_and_live_and_says_why() -> None:
    thread = replace(THREAD, doing=ThreadLocation.REPLACEMENT.value)
    health = judged(
        thread, doing=ThreadActivity(ThreadLocation.REPLACEMENT, "disk is full", NOW_S - 3)
    )
    assert (health.healthy, health.live) == (False, True)
    assert health.why == ["thread 0 has been waiting to be replaced for 3.0 s, after: disk is full"]


def test_a_task_that_waits_for_its_transaction_coordinator_is_named_and_leaves_it_live() -> None:
    waiting = replace(THREAD, waiting=(WaitingTask("0_1", 31.4, ""), WaitingTask("0_2", 29.0, "")))
    health = judged(waiting, state="REBALANCING")
    assert (health.healthy, health.live) == (False, True)
    assert health.why == ["thread 0: task 0_1 has waited 31 s for its producer: no answer"]


def test_an_overdue_heartbeat_makes_it_unhealthy_at_once_and_leaves_it_live() -> None:
    health = judged(replace(THREAD, silent_s=0.4, unanswered_s=10.4))
    assert (health.healthy, health.live) == (False, True)
    (why,) = health.why
    assert why.startswith("thread 0 waits for the answer to a heartbeat for 10 s: the coordinator")
    assert len(judged(replace(THREAD, silent_s=31.0, unanswered_s=41.0)).why) == 1


def test_a_group_without_tasks_makes_it_unhealthy_and_leaves_it_live() -> None:
    health = judged(replace(THREAD, group="group 'a' has no tasks yet"), state="REBALANCING")
    assert (health.healthy, health.live) == (False, True)
    assert health.why == ["thread 0: group 'a' has no tasks yet"]


def test_a_short_trouble_is_none() -> None:
    assert judged(replace(THREAD, trouble="fenced", trouble_s=29.0, silent_s=29.0)).healthy


def test_health_is_json_with_all_that_it_has() -> None:
    found = orjson.loads(stuck(ThreadLocation.STORE).as_json())
    assert found["threads"][0]["tasks"] == {"0_0": "RUNNING", "0_1": "RESTORING"}
    assert found["threads"][0]["restoring"][0]["seconds_left"] == 4.0
    assert [each["lag"] for each in found["threads"][0]["standby"]] == [17, None]
    assert found["live"] is False


def test_figures_are_for_prometheus() -> None:
    counters = {"thread 0": {"records": 7, "commits": 2}}
    text = render_prometheus_text(
        WorkerCollector(lambda: stuck(ThreadLocation.USER), lambda: counters, lambda: 61_000)
    ).decode()
    for line in (
        'millrace_worker_state{state="RUNNING"} 1.0',
        "millrace_worker_healthy 0.0",
        'millrace_thread_records_total{thread="thread 0"} 7.0',
        'millrace_thread_stuck{thread="thread 0",where="user function"} 1.0',
        'millrace_thread_tasks{state="RESTORING",thread="thread 0"} 1.0',
        'millrace_thread_commit_age_seconds{thread="thread 0"} 2.0',
        'millrace_restore_records_left{store="counts",task="0_1",thread="thread 0"} 1200.0',
        'millrace_standby_lag{store="counts",task="0_2",thread="thread 0"} 17.0',
    ):
        assert line in text.splitlines()
    assert text.count("millrace_standby_lag{") == 1, "an unknown lag is no figure"


@pytest.fixture
def endpoint() -> Iterator[HttpEndpoint]:
    answers = {"/health": lambda: HttpResponse(503, "application/json", b"{}")}
    made = HttpEndpoint("health_port", HOST, 0, answers, SystemHost())
    yield made
    made.close()


@pytest.mark.parametrize(("path", "status"), [("/health?x=1", 503), ("/", 404)])
def test_answers_go_by_path(endpoint: HttpEndpoint, path: str, status: int) -> None:
    connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=HANG_LIMIT_S)
    connection.request("GET", path)
    assert connection.getresponse().status == status
    connection.close()


def test_a_port_that_is_taken_is_named_with_its_setting(endpoint: HttpEndpoint) -> None:
    with pytest.raises(
        ConfigError, match=rf"metrics_port {endpoint.port} on {HOST}: Address already in use"
    ):
        HttpEndpoint("metrics_port", HOST, endpoint.port, {}, SystemHost())


@pytest.mark.parametrize("setting", ["health_port", "metrics_port"])
def test_health_and_metrics_are_answered_at_the_address_of_health_host(setting: str) -> None:
    elsewhere = "127.0.0.2"
    config = load_config(health_host=elsewhere, **{setting: 0})
    [(name, endpoint)] = start_endpoints(
        config,
        0,
        SystemHost(),
        report_health=raise_unused,
        collector=WorkerCollector(raise_unused, dict, int),
    )
    try:
        assert name == setting
        connection = HTTPConnection(elsewhere, endpoint.port, timeout=HANG_LIMIT_S)
        connection.request("GET", "/nowhere")
        assert connection.getresponse().status == 404
        connection.close()
        with pytest.raises(ConnectionRefusedError):
            HTTPConnection(HOST, endpoint.port, timeout=HANG_LIMIT_S).connect()
    finally:
        endpoint.close()


def raise_unused() -> Health:
    raise AssertionError("nobody asks for it")


def test_an_address_that_is_not_the_machines_is_named() -> None:
    with pytest.raises(ConfigError, match=r"health_port 0 on 192\.0\.2\.1: "):
        HttpEndpoint("health_port", "192.0.2.1", 0, {}, SystemHost())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("health_port", 70_000, "health_port must be from 0 to 65535, not 70000"),
        ("metrics_port", -1, "metrics_port must be from 0 to 65535, not -1"),
        ("shutdown_timeout_ms", 0, "shutdown_timeout_ms must be at least 1, not 0"),
        ("stuck_after_ms", "soon", "'stuck_after_ms' can't be 'soon'"),
    ],
)
def test_a_bad_setting_gets_one_clear_message(name: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(**{name: value})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["health_port", "metrics_port"])
def test_workers_that_run_out_of_ports_get_one_clear_message(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("streams.processes.foreground.fork_and_watch_workers", lambda *_, **__: 0)

    def run(port: int) -> None:
        app = App("ports", config=load_config(**{name: port}))
        stream = app.stream("in", key=serdes.string, value=serdes.string)
        stream.to("out")
        app.run(workers=3)

    run(65_533)
    run(0)
    with pytest.raises(SystemExit, match="2"):
        run(65_534)
    assert capsys.readouterr().err == (
        f"millrace: {name} 65534: 3 workers would take the ports 65534 to 65536, "
        "and 65535 is the last one\n"
    )
