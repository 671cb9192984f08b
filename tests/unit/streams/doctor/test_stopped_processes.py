"""Test that the doctor names processes that are stopped, and workers that have ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from state.linux_calls import find_listening_process_ids, is_stopped
from state.locks import LockHolder
from streams.doctor import brokers, workers
from streams.doctor.broker_probe import BrokerProbe
from streams.doctor.findings import Verdict
from streams.doctor.local_workers import LocalWorker
from streams.doctor.stopped_processes import find_stopped_listeners
from streams.doctor.worker_facts import sample_workers
from tests.processes import free_ports, wait_until

LISTEN = """
import socket, time
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    time.sleep(600)
"""
pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Linux tells it")


@pytest.fixture
def listener() -> Iterator[tuple[int, int]]:
    """Provide the id and the port of a process that listens, and answers nothing."""
    process = subprocess.Popen([sys.executable, "-c", LISTEN], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.pid, int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def stop_process(process_id: int) -> None:
    os.kill(process_id, signal.SIGSTOP)
    wait_until(lambda: is_stopped(process_id), what="the process to stop")


def test_the_process_at_a_port_is_found_once_it_is_stopped(listener: tuple[int, int]) -> None:
    process_id, port = listener
    assert find_listening_process_ids(port) == [process_id]
    assert not is_stopped(process_id)
    assert find_stopped_listeners([("127.0.0.1", port)]) == {}
    stop_process(process_id)
    assert find_stopped_listeners([("127.0.0.1", port)]) == {("127.0.0.1", port): process_id}
    assert find_stopped_listeners([("elsewhere.invalid", port)]) == {}


def test_a_broker_that_is_stopped_is_let_go_on() -> None:
    probe = BrokerProbe(("127.0.0.1", 9092), failure="no answer")
    (found,) = brokers.check_reachable([probe], {("127.0.0.1", 9092): 77})
    assert "process 77, which listens there, is stopped" in found.what
    assert "`kill -CONT 77`" in found.remedy
    (other,) = brokers.check_reachable([probe])
    assert "kill" not in other.remedy


def test_a_worker_that_is_stopped_is_told_from_one_that_has_ended(
    listener: tuple[int, int], tmp_path: Path
) -> None:
    process_id, port = listener
    stop_process(process_id)
    (gone,) = free_ports(1)
    facts = sample_workers(tmp_path, "app", [port, gone])
    stopped, ended = workers.check_health(facts)
    assert f"`kill -CONT {process_id}`" in stopped.remedy
    assert ended.verdict is Verdict.WARNING
    assert f"nothing listens at 127.0.0.1:{gone}" in ended.what
    assert "kill" not in ended.remedy


def test_a_zombie_goes_on_by_its_process(listener: tuple[int, int]) -> None:
    process_id, _ = listener
    worker = LocalWorker("process-0", "id", f"process {process_id}", LockHolder(process_id, True))
    assert worker.find_stopped_process() is None
    stop_process(process_id)
    assert worker.find_stopped_process() == process_id


def test_a_process_of_another_machine_is_not_advised_to_go_on(listener: tuple[int, int]) -> None:
    process, _ = listener
    os.kill(process, signal.SIGSTOP)
    wait_until(lambda: is_stopped(process), what="the process to be stopped")
    here = LocalWorker("process-0", "id", "of this machine", LockHolder(process, True))
    assert here.find_stopped_process() == process
    elsewhere = LocalWorker("process-0", "id", "of db-7", LockHolder(process, False))
    assert elsewhere.find_stopped_process() is None
