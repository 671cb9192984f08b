"""Test that a worker ends in order, when something keeps it, and at once, and loses nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.brokers import Broker
from tests.integration.cluster import Command, Topics
from tests.processes import HANG_LIMIT_S, HOST, UNREACHED_MS, wait_until

# Records wait in `gated` as long as the gate is closed: a file that is there.
PROGRAM = """
import time
from pathlib import Path
from streams import App, serdes

def gated(value):
    while Path({gate!r}).exists():
        time.sleep(0.02)
    return value

app = App({name!r}, commit_interval_ms=50, heartbeat_interval_ms=200, session_timeout_ms=10_000)
stream = app.stream("{name}-in", key=serdes.string, value=serdes.string).map_values(gated)
stream.group_by_key().count(store="counts").to_stream().to("{name}-out")
"""
RECORDS = 300


def adjacent_ports(count: int) -> int:
    """Return the first of so many free ports in a row, below those that connections are given."""
    for first in range(20_000 + os.getpid() % 5_000, 32_000, count):
        with ExitStack() as sockets, suppress(OSError):
            for port in range(first, first + count):
                sockets.enter_context(socket.socket()).bind((HOST, port))
            return first
    raise AssertionError("no ports are free")


class Gated:
    """Runs the program above on one state directory, with its gate."""

    def __init__(self, topics: Topics, directory: Path, workers: int) -> None:
        self.topics = topics
        self._directory = directory
        self._gate = directory / "gate"
        self.port = adjacent_ports(workers)
        self.workers = workers
        program = PROGRAM.format(gate=str(self._gate), name=topics.application)
        (directory / "program.py").write_text(program)

    @contextmanager
    def running(self, shutdown_timeout_ms: int) -> Iterator[Command]:
        options = ["--state-dir", str(self._directory / "state")]
        options += ["--bootstrap-servers", self.topics.servers, "--workers", str(self.workers)]
        options += ["--shutdown-timeout-ms", str(shutdown_timeout_ms)]
        options += ["--set", "stuck_after_ms=500", "--health-port", str(self.port)]
        arguments = ["-m", "streams", "run", "program:app", "-v", *options]
        command = Command(arguments, self._directory)
        try:
            yield command
        except BaseException:
            print(command.log_tail(100))  # for the report of the failure
            raise
        finally:
            self.open()
            command.close()

    def close(self) -> None:
        self._gate.touch()

    def open(self) -> None:
        self._gate.unlink(missing_ok=True)

    def health(self) -> list[tuple[int, Any]]:
        """Return status and answer of each worker's health check."""
        found = []
        for port in range(self.port, self.port + self.workers):
            connection = HTTPConnection(HOST, port, timeout=HANG_LIMIT_S)
            connection.request("GET", "/health")
            answer = connection.getresponse()
            found.append((answer.status, json.loads(answer.read())))
            connection.close()
        return found

    def is_healthy(self) -> bool:
        """Tell whether all workers say that they are healthy; one that is not up yet does not."""
        try:
            return all(status == 200 for status, _ in self.health())
        except OSError:
            return False

    def load_until_stuck(self, command: Command) -> None:
        """Close the gate and load records until the watchdog says who is to blame."""
        self.close()
        self.topics.load(RECORDS)
        wait_until(
            lambda: "has been in the user's function gated" in command.log_since(0),
            what=command.log_tail,
        )


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def gated(request: pytest.FixtureRequest, topics: Topics, tmp_path: Path) -> Gated:
    return Gated(topics, tmp_path, request.param)


def test_however_a_worker_is_ended_nothing_is_lost_and_nothing_doubled(gated: Gated) -> None:
    topics = gated.topics
    topics.load(RECORDS)
    with gated.running(shutdown_timeout_ms=UNREACHED_MS) as command:
        topics.wait_for_counts(topics.loaded)
        wait_until(gated.is_healthy, what=command.log_tail)
        command.signal(signal.SIGTERM)
        assert command.wait_for_end() == 0, "in order"
    with gated.running(shutdown_timeout_ms=1_000) as command:
        gated.load_until_stuck(command)
        why = [line for status, health in gated.health() if status == 503 for line in health["why"]]
        assert any("has been in the user's function gated" in line for line in why)
        command.signal(signal.SIGTERM)
        assert command.wait_for_end() == 1, "a user's function kept it"
        said = command.log_since(0)
        assert "not closed after 1 s: thread 0 has been in the user's function gated" in said
    with gated.running(shutdown_timeout_ms=UNREACHED_MS) as command:
        gated.load_until_stuck(command)
        command.signal(signal.SIGTERM)
        command.signal(signal.SIGINT)
        assert command.wait_for_end() in (128 + signal.SIGTERM, 128 + signal.SIGINT)
        assert "without a commit" in command.log_since(0)
    with gated.running(shutdown_timeout_ms=UNREACHED_MS) as command:
        assert topics.wait_for_counts(topics.loaded) == topics.truth
        command.signal(signal.SIGINT)
        assert command.wait_for_end() == 0
    assert topics.counts() == topics.truth


def test_a_worker_whose_broker_is_away_ends_in_time_and_says_so(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    gated = Gated(topics, tmp_path, workers=1)
    with gated.running(shutdown_timeout_ms=2_000) as command:
        gated.load_until_stuck(command)
        broker.kill()
        try:
            gated.open()  # what was processed can't be committed
            wait_until(
                lambda: "has been waiting for the broker" in command.log_since(0),
                what=command.log_tail,
            )
            command.signal(signal.SIGTERM)
            assert command.wait_for_end() == 1
            assert "not closed after 2 s: thread 0 has been waiting" in command.log_since(0)
        finally:
            broker.restart()
    with gated.running(shutdown_timeout_ms=UNREACHED_MS):
        assert topics.wait_for_counts(topics.loaded) == topics.truth
