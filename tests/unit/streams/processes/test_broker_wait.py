"""Test when a worker that starts waits for a broker, and what it says meanwhile."""

from __future__ import annotations

import json
import logging
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coordinator import EmbeddedBroker
from streams import App, serdes
from streams.common.host import SystemHost
from streams.errors import BrokerUnavailable, ConfigError
from streams.processes.broker_wait import (
    StartGivenUp,
    has_run_before,
    refuse_unknown_server_names,
    wait_for_brokers,
)
from streams.settings.config import load_config
from tests.processes import HANG_LIMIT_S, free_ports, wait_until


class QuickEvent:
    """Stands in for an event whose waits take no time."""

    def __init__(self, host: QuickHost) -> None:
        self._host = host

    def is_set(self) -> bool:
        return False

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def wait(self, timeout: float | None = None) -> bool:
        self._host.now_s += timeout or 0.0
        return False


class QuickHost(SystemHost):
    """Represents a host whose clock goes on with each wait."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s

    def create_event(self) -> QuickEvent:
        return QuickEvent(self)


def ask(port: int, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_a_broker_is_waited_for_with_a_line_a_minute_and_answers_to_probes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    (port,) = free_ports(1)
    config = load_config(state_dir=tmp_path, bootstrap_servers="kafka:9092", health_port=port)
    host, attempts = QuickHost(), [0]

    def connect() -> str:
        attempts[0] += 1
        if attempts[0] == 200:
            status, body = ask(port, "/health")
            assert status == 503
            assert json.loads(body)["why"] == ["no broker answers, for 99 s: refused"]
            assert ask(port, "/live")[0] == 200
            assert b"millrace_worker_live 1.0" in ask(port, "/metrics")[1]
        if attempts[0] < 300:
            raise BrokerUnavailable("refused")
        return "connected"

    assert wait_for_brokers(connect, config, 0, host, lambda: False) == "connected"
    assert caplog.messages == [
        "the application has run before, so a broker is waited for: refused",
        "a broker is still waited for, for 60 s: refused",
        "a broker is still waited for, for 120 s: refused",
        "a broker answers, after 149 s",
    ]


def test_a_stop_ends_the_wait_and_what_a_person_must_correct_ends_it_too(tmp_path: Path) -> None:
    config = load_config(state_dir=tmp_path, bootstrap_servers="kafka:9092")
    errors: list[Exception] = [BrokerUnavailable("a"), BrokerUnavailable("b"), ConfigError("wrong")]

    def connect() -> None:
        raise errors.pop(0)

    with pytest.raises(ConfigError, match="wrong"):
        wait_for_brokers(connect, config, 0, QuickHost(), lambda: False)
    errors.append(BrokerUnavailable("refused"))
    with pytest.raises(StartGivenUp, match="refused"):
        wait_for_brokers(connect, config, 0, QuickHost(), lambda: True)


def test_an_application_has_run_once_it_has_an_id_in_the_state_directory(tmp_path: Path) -> None:
    config = load_config(state_dir=tmp_path)
    assert not has_run_before(config, "orders")
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "directory-id").touch()
    assert has_run_before(config, "orders")


def test_a_name_that_does_not_exist_is_refused_at_the_first_start(tmp_path: Path) -> None:
    refuse_unknown_server_names(load_config(state_dir=tmp_path, bootstrap_servers="127.0.0.1:9092"))
    both = "kafka.invalid:9092,127.0.0.1:9092"
    refuse_unknown_server_names(load_config(state_dir=tmp_path, bootstrap_servers=both))


def create_application(state_dir: Path, port: int) -> App:
    """Create an application that copies, and has run before with its state directory."""
    application = App("waits", bootstrap_servers=f"127.0.0.1:{port}", state_dir=state_dir)
    application.stream("in", key=serdes.bytes, value=serdes.bytes).to("out")
    (state_dir / "waits").mkdir(parents=True)
    (state_dir / "waits" / "directory-id").write_text("8a2c4b38-2a3c-4f5e-9d5b-0c3a6e1f7b11")
    return application


@pytest.fixture
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a look for a broker be given up soon."""
    monkeypatch.setattr("streams.processes.start.BROKER_WAIT_S", 0.3)


@pytest.mark.usefixtures("short_wait")
def test_an_application_in_the_background_waits_for_a_broker_at_its_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (port,) = free_ports(1)
    application = create_application(tmp_path / "state", port)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(application.start, handle_signals=False)
        wait_until(lambda: "so a broker is waited for" in caplog.text, what=lambda: caplog.text)
        with (
            EmbeddedBroker(topics={"in": 1, "out": 1}, port=port),
            starting.result(HANG_LIMIT_S) as running,
        ):
            running.wait_for("RUNNING", HANG_LIMIT_S)


@pytest.mark.usefixtures("short_wait")
def test_who_does_not_want_to_wait_is_told_that_no_broker_answers(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    application = create_application(tmp_path / "state", port)
    with pytest.raises(BrokerUnavailable, match="no Kafka broker answers"):
        application.start(wait_for_broker=False)
