"""Test that workers stop whenever the signal comes, and report an error once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pytest

from streams.processes.workers import SharedErrors

WORKERS = 8
# Workers that are not told to stop are killed after five seconds, and the status is 1.
BEGINNING = """
import os, signal, subprocess, sys, threading, time
from streams.processes.workers import fork_and_watch_workers

def run(number):
    time.sleep(60)

def send_signal():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)
"""
RUN = """
sys.exit(fork_and_watch_workers(2, run, stop_timeout_s=-5))
"""


def run_script(*lines: str) -> subprocess.CompletedProcess[str]:
    """Run workers in a process after some lines of Python."""
    script = "\n".join((BEGINNING, *lines, RUN))
    command = [sys.executable, "-c", script]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        command, timeout=60, check=False, capture_output=True, text=True, env=buffered
    )


def claim_in_process(errors: SharedErrors, message: str, begin: int) -> int:
    """Fork a process that claims once `begin` can be read, and exits with 1 if it was first."""
    child = os.fork()
    if child == 0:
        os.read(begin, 1)
        os._exit(int(errors.try_claim_message(message)))
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


SIGNAL_AT_FORK = "os.register_at_fork(after_in_parent=send_signal)"
OTHER_THREAD = "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"


def test_a_signal_while_a_worker_is_forked_stops_it() -> None:
    ended = run_script(SIGNAL_AT_FORK)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_signal_that_another_thread_takes_while_a_worker_is_forked_stops_it() -> None:
    ended = run_script(OTHER_THREAD, SIGNAL_AT_FORK)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_first_signal_after_the_end_of_a_worker_kills_no_other() -> None:
    ended = run_script(
        "is_ready, tell_ready = os.pipe()",
        "def run(number):",
        "    if number == 0:",
        "        os.read(is_ready, 1)",
        "        os._exit(3)",
        "    signal.signal(signal.SIGTERM, commit)",
        "    os.write(tell_ready, b'.')",
        "    time.sleep(60)",
        "def commit(*_):",
        "    os.kill(os.getppid(), signal.SIGTERM)",
        "    time.sleep(0.3)",
        "    os.write(1, b'committed')",
        "    os._exit(0)",
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "committed", "")


def test_a_child_that_is_no_worker_is_not_taken_for_one() -> None:
    ended = run_script(
        "subprocess.Popen(['true'])",
        "def run(number):",
        "    time.sleep(0.5)",
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_signals_are_not_held_back_after_a_fork_that_failed() -> None:
    ended = run_script(
        "def fork():",
        "    raise OSError('no more processes')",
        "os.fork = fork",
        "try:",
        "    fork_and_watch_workers(1, run, stop_timeout_s=-5)",
        "except OSError:",
        "    sys.exit(len(signal.pthread_sigmask(signal.SIG_BLOCK, ())))",
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "SIGTERM"), (35, "signal 35")])
def test_a_signal_before_a_worker_has_handlers_ends_it_alone_and_is_told(
    number: int, name: str
) -> None:
    ended = run_script(
        "forks = []",
        "def send_to_first():",
        "    if len(forks) == 1:",
        f"        os.kill(os.getpid(), {int(number)})",
        "os.register_at_fork(before=lambda: forks.append(1), after_in_child=send_to_first)",
        "def run(number):",
        "    pass",
    )
    assert ended.returncode == 0
    said = rf"millrace: worker \d+ was ended by {name}: started again \(see MR-083\)\n"
    assert re.fullmatch(said, ended.stderr)


def test_a_worker_that_is_killed_while_it_stops_is_told_and_is_the_status() -> None:
    ended = run_script(
        "def run(number):",
        "    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))",
        "    if number == 1:",
        "        os.kill(os.getppid(), signal.SIGTERM)",
        "    time.sleep(60)",
    )
    assert ended.returncode == 128 + signal.SIGKILL
    assert "was ended by SIGKILL, without a commit" in ended.stderr


def test_the_second_signal_kills_the_workers() -> None:
    ended = run_script(
        "is_ready, tell_ready = os.pipe()",
        "def run(number):",
        "    signal.signal(signal.SIGTERM, stop_slowly)",
        "    if number == 0:",
        "        os.write(tell_ready, b'.')",
        "    else:",
        "        os.read(is_ready, 1)",
        "        os.kill(os.getppid(), signal.SIGINT)",
        "    time.sleep(60)",
        "def stop_slowly(*_):",
        "    os.kill(os.getppid(), signal.SIGINT)",
        "    time.sleep(60)",
    )
    assert ended.returncode == 128 + signal.SIGINT
    assert ended.stderr.count("was ended by SIGKILL, without a commit") == 2


def test_what_workers_and_their_watcher_print_is_printed_once() -> None:
    ended = run_script("print('watcher')", "def run(number):", "    print('worker', number)")
    assert ended.returncode == 0
    assert sorted(ended.stdout.splitlines()) == ["watcher", "worker 0", "worker 1"]


def test_a_worker_that_brokers_did_not_answer_is_started_again_beside_the_others() -> None:
    ended = run_script(
        "import tempfile; from streams.processes import workers",
        "workers.OUTAGE_PAUSE_S = 0.1",
        "file = tempfile.NamedTemporaryFile()",
        "def run(number):",
        "    with open(file.name, 'a') as lives: lives.write(str(number))",
        "    lives = open(file.name).read()",
        "    if number == 1:",
        "        os._exit(75 if lives.count('1') < 3 else 0)",
        "    while open(file.name).read().count('1') < 3: time.sleep(0.05)",
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("has ended, since brokers did not answer in time") == 2


def test_workers_that_no_broker_answers_end_with_a_status_of_their_own() -> None:
    ended = run_script("def run(number):", "    os._exit(75)")
    assert ended.returncode == 75
