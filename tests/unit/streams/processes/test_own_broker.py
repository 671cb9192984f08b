"""Test which embedded brokers a run stops that has failed before a worker of it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from streams import App, serdes
from streams.errors import ConfigError, UserError
from streams.processes.broker_stop import read_broker_status, stop_broker
from streams.processes.embedded import ensure_embedded_broker
from streams.processes.own_broker import OwnBroker
from streams.settings.config import StreamsConfig, load_config
from tests.processes import HANG_LIMIT_S, wait_until

PROGRAM = """
from streams import App, serdes
app = App("fails")
app.stream("missing", key=serdes.bytes, value=serdes.bytes).to("missing-too")
"""


@pytest.fixture
def config(tmp_path: Path) -> Iterator[StreamsConfig]:
    """Provide settings with a state directory, whose broker is ended with the test."""
    yield load_config(state_dir=tmp_path / "state")
    found = read_broker_status(tmp_path / "state")
    if found.process_id is not None:
        with suppress(ProcessLookupError):
            os.kill(found.process_id, signal.SIGKILL)


def run_and_fail(config: StreamsConfig) -> None:
    """Fail a run as at a missing topic, after it has started the broker if none ran."""
    with suppress(ConfigError), OwnBroker(config, "app"):
        ensure_embedded_broker(config.state_dir)
        raise ConfigError("no topic")


def is_running(config: StreamsConfig) -> bool:
    return read_broker_status(config.state_dir).is_running


def test_a_run_that_fails_leaves_no_broker_that_it_has_started(config: StreamsConfig) -> None:
    run_and_fail(config)
    assert not is_running(config)
    run_and_fail(config)
    assert not is_running(config)


def test_a_broker_that_ran_before_stays(config: StreamsConfig) -> None:
    ensure_embedded_broker(config.state_dir)
    run_and_fail(config)
    assert is_running(config)


def test_a_broker_that_another_run_waits_for_stays_and_goes_with_the_last(
    config: StreamsConfig,
) -> None:
    with OwnBroker(config, "app"):
        run_and_fail(config)
        assert is_running(config)
    assert not is_running(config)


def test_a_broker_that_a_worker_has_used_stays(config: StreamsConfig) -> None:
    with OwnBroker(config, "app") as broker:
        ensure_embedded_broker(config.state_dir)
        broker.note_broker_use()
    assert is_running(config)


def test_what_a_worker_process_notes_is_known_to_its_watcher(config: StreamsConfig) -> None:
    with OwnBroker(config, "app") as broker:
        ensure_embedded_broker(config.state_dir)
        child = os.fork()
        if not child:
            broker.note_broker_use()
            os._exit(0)
        assert os.waitpid(child, 0) == (child, 0)
    assert is_running(config)


def test_the_brokers_of_an_address_are_none_of_the_run(tmp_path: Path) -> None:
    with OwnBroker(load_config(state_dir=tmp_path, bootstrap_servers="kafka:9092"), "app"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_start_in_the_background_that_fails_leaves_no_broker(config: StreamsConfig) -> None:
    app = App("fails", state_dir=config.state_dir)
    app.stream("missing", key=serdes.bytes, value=serdes.bytes).to("missing-too")
    with pytest.raises(UserError, match="missing"):
        app.start(handle_signals=False)
    assert (config.state_dir / "broker").is_dir()  # it was started
    assert not is_running(config)


def test_the_broker_of_a_start_in_the_background_stays_when_the_worker_is_closed(
    config: StreamsConfig,
) -> None:
    app = App("starts", state_dir=config.state_dir)
    app.stream("given", key=serdes.bytes, value=serdes.bytes).to("given-too")
    admin = AdminClient({"bootstrap.servers": ensure_embedded_broker(config.state_dir)})
    for created in admin.create_topics([NewTopic("given", 1), NewTopic("given-too", 1)]).values():
        created.result(HANG_LIMIT_S)
    stop_broker(config.state_dir, HANG_LIMIT_S)
    app.start(handle_signals=False).close()
    assert is_running(config)


def run_program(config: StreamsConfig, workers: int, directory: Path) -> subprocess.Popen[str]:
    """Start `millrace run` with an application whose topics are missing."""
    (directory / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "streams", "run", "program:app"]
    return subprocess.Popen(
        [*command, "--workers", str(workers), "--state-dir", str(config.state_dir)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_leaves_no_broker_where_a_topic_is_missing(
    config: StreamsConfig, tmp_path: Path, workers: int
) -> None:
    failed = run_program(config, workers, tmp_path)
    _, message = failed.communicate(timeout=HANG_LIMIT_S)
    assert failed.returncode == 2
    assert message.count("millrace: ") == 1
    assert "missing" in message
    assert not is_running(config)


def test_the_command_leaves_no_broker_where_it_is_interrupted_in_its_start(
    config: StreamsConfig, tmp_path: Path
) -> None:
    interrupted = run_program(config, 1, tmp_path)
    started = config.state_dir / "broker" / "broker.log"
    wait_until(started.exists, what="a broker that is being started")
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate(timeout=HANG_LIMIT_S)
    assert not is_running(config)
