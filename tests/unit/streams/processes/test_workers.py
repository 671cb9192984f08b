"""Test that workers stop whenever the signal comes, and report an error once."""

from __future__ import annotations

import os
import subprocess
import sys

from streams.processes.workers import SharedErrors

WORKERS = 8
# The watcher is told to stop while it forks a worker. A worker that is not told so is killed after
# a second, and the status is 1.
SIGNALLED_AT_FORK = """
import os, signal, sys, time
from streams.processes.workers import run_workers

def send_signal():
    os.kill(os.getpid(), signal.SIGTERM)

def run(number):
    time.sleep(60)

os.register_at_fork(after_in_parent=send_signal)
sys.exit(run_workers(2, run, timeout_s=-9))
"""


def claim_in_process(errors: SharedErrors, message: str, begin: int) -> int:
    """Fork a process that claims once `begin` can be read, and exits with 1 if it was first."""
    child = os.fork()
    if child == 0:
        os.read(begin, 1)
        os._exit(int(errors.claim_message(message)))
    return child


def count_claims(errors: SharedErrors, messages: list[str]) -> int:
    """Return how many of the processes that claim these messages at once were the first."""
    begin, go = os.pipe()
    children = [claim_in_process(errors, message, begin) for message in messages]
    os.write(go, b"." * len(messages))
    ended = [os.waitpid(child, 0)[1] for child in children]
    os.close(begin)
    os.close(go)
    return sum(os.waitstatus_to_exitcode(each) for each in ended)


def test_an_error_that_all_workers_meet_is_reported_by_one() -> None:
    errors = SharedErrors()
    assert count_claims(errors, ["topic 'lines' does not exist"] * WORKERS) == 1
    assert count_claims(errors, ["topic 'lines' does not exist"] * WORKERS) == 0


def test_different_errors_are_all_reported() -> None:
    errors = SharedErrors()
    assert count_claims(errors, [f"store {number}" for number in range(WORKERS)]) == WORKERS


def test_a_signal_while_a_worker_is_forked_stops_it() -> None:
    ended = subprocess.run([sys.executable, "-c", SIGNALLED_AT_FORK], timeout=30, check=False)
    assert ended.returncode == 0
