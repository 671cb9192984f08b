"""Test that a start of the embedded broker leaves nothing half-started, whoever is killed in it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from coordinator.log.disk import SystemLock
from streams.errors import ConfigError
from streams.processes.broker_start import BrokerStartStep, hold_start_lock
from streams.processes.embedded import ensure_embedded_broker
from tests.processes import HANG_LIMIT_S, answers, wait_until

WORKER = """
import os, signal, sys
from pathlib import Path
from streams.processes.embedded import ensure_embedded_broker

state, at_step, victim = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def handle_step(step, broker_pid):
    if step.name != at_step:
        return
    try:
        os.close(os.open(state / "killed", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return  # one start is interrupted, and the next one is not
    if victim == "worker of a stopped broker":
        (state / "stopped").write_text(str(broker_pid))
        os.kill(broker_pid, signal.SIGSTOP)
    elif "broker" in victim.split():
        os.kill(broker_pid, signal.SIGKILL)
    if "worker" in victim.split():
        os.kill(os.getpid(), signal.SIGKILL)

print(ensure_embedded_broker(state, on_step=handle_step))
"""
STOPPED = "worker of a stopped broker"
WITHOUT_BROKER = {BrokerStartStep.LOCKED}
CASES = [
    (step, victim)
    for step in BrokerStartStep
    for victim in ("worker", "broker", "worker and broker", STOPPED)
    if victim == "worker" or step not in WITHOUT_BROKER
]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """Provide a state directory whose embedded broker is ended with the test."""
    (tmp_path / "state").mkdir()
    yield tmp_path / "state"
    with suppress(OSError, IndexError):
        os.kill(read_broker_pid(tmp_path / "state"), signal.SIGKILL)


def read_broker_pid(state: Path) -> int:
    return int((state / "broker" / "process").read_text().split()[1])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize(("step", "victim"), CASES, ids=[f"{s.name}-{v}" for s, v in CASES])
def test_a_kill_at_any_step_of_a_start_leaves_one_broker_for_all_workers(
    state: Path, step: BrokerStartStep, victim: str, count: int
) -> None:
    check_start(state, step, victim, count)


def test_a_broker_that_lives_on_after_its_starter_keeps_others_from_starting_one(
    state: Path,
) -> None:
    """Check the case, on every run, that fails if the broker does not inherit the lock."""
    check_start(state, BrokerStartStep.SPAWNED, STOPPED, 2)


def check_start(state: Path, step: BrokerStartStep, victim: str, count: int) -> None:
    """Check that workers find one broker, though one start of it is interrupted at a step."""
    command = [sys.executable, "-c", WORKER, str(state), step.name, victim]
    workers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    if victim == STOPPED:
        wait_until(lambda: any(each.poll() for each in workers), what="the end of a worker")
        os.kill(int((state / "stopped").read_text()), signal.SIGCONT)
    outputs = [each.communicate(timeout=HANG_LIMIT_S) for each in workers]
    killed = [each for each in workers if each.returncode == -signal.SIGKILL]
    assert len(killed) == victim.startswith("worker")
    assert [each.returncode for each in workers if each not in killed] == [0] * (
        count - len(killed)
    ), outputs
    found = ensure_embedded_broker(state)
    assert answers(int(found.rpartition(":")[2]))
    if victim != "broker":  # else it may have been announced before
        assert {out.strip() for out, _ in outputs if out} == {found}


def test_a_half_started_broker_is_waited_for_until_the_worker_stops(state: Path) -> None:
    directory = state / "broker"
    directory.mkdir()
    stop, ended = Event(), Event()

    def wait_for_lock() -> None:
        with pytest.raises(ConfigError, match="was not waited for"):
            ensure_embedded_broker(state, stop.is_set)
        ended.set()

    with hold_start_lock(directory, lambda: False):
        waiting = Thread(target=wait_for_lock)
        waiting.start()
        assert not ended.is_set()
        stop.set()
        waiting.join(HANG_LIMIT_S)
    assert ended.is_set()


def test_who_looks_whether_a_broker_lives_does_not_keep_one_from_starting(tmp_path: Path) -> None:
    looked_at = os.open(tmp_path / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(looked_at, fcntl.LOCK_SH)
    locks: list[SystemLock] = []
    locking = Thread(target=lambda: locks.append(SystemLock(tmp_path / ".lock")))
    locking.start()
    os.close(looked_at)
    locking.join(HANG_LIMIT_S)
    assert len(locks) == 1
    with pytest.raises(BlockingIOError):
        SystemLock(tmp_path / ".lock")
    locks[0].release()
    SystemLock(tmp_path / ".lock").release()
