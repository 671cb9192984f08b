"""Test calls side by side, and that nobody who stops listening waits for them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from queue import SimpleQueue
from threading import Event

import pytest

from streams.doctor.side_by_side import call_side_by_side, call_until_deadline
from tests.processes import HANG_LIMIT_S

PROGRAM = """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from streams.doctor.side_by_side import call_side_by_side
def wait(seconds):
    os.write(1, b"begun\\n")
    time.sleep(seconds)
list(call_side_by_side(wait, [{seconds}] * 40, at_once=16))
"""


def test_results_come_in_the_order_of_the_arguments() -> None:
    assert list(call_side_by_side(abs, [-3, 1, -2], at_once=2)) == [3, 1, 2]
    assert list(call_side_by_side(abs, [], at_once=2)) == []


def test_what_a_call_raises_is_raised_where_its_result_is_taken() -> None:
    results = call_side_by_side(sys.exit, [3, 4], at_once=2)
    with pytest.raises(SystemExit, match="3"):
        next(results)


def test_once_nobody_listens_no_call_begins_and_none_is_waited_for() -> None:
    begun, end = SimpleQueue[int](), Event()

    def wait_unless_first(number: int) -> int:
        if number:
            begun.put(number)
            end.wait(HANG_LIMIT_S)
        return number

    results = call_side_by_side(wait_unless_first, range(10), at_once=2)
    assert isinstance(results, Generator)
    assert next(results) == 0
    assert {begun.get(timeout=HANG_LIMIT_S) for _ in range(2)} == {1, 2}
    results.close()
    running = [each for each in threading.enumerate() if each.name.startswith("doctor-")]
    end.set()
    for each in running:
        each.join(HANG_LIMIT_S)
    assert begun.empty()


def test_at_a_deadline_no_call_is_waited_for_and_none_begins() -> None:
    begun, end = SimpleQueue[int](), Event()

    def wait_unless_first(number: int) -> int:
        begun.put(number)
        if number:
            end.wait(HANG_LIMIT_S)
        return number

    results = call_until_deadline(wait_unless_first, range(4), 1, time.monotonic() + 0.2)
    assert list(results) == [0, None, None, None]
    running = [each for each in threading.enumerate() if each.name.startswith("doctor-")]
    end.set()
    for each in running:
        each.join(HANG_LIMIT_S)
    assert [begun.get(), begun.get()] == [0, 1]
    assert begun.empty()


def test_after_a_deadline_nothing_is_begun() -> None:
    assert list(call_until_deadline(sys.exit, [1, 2], 2, time.monotonic())) == [None, None]


def test_ctrl_c_ends_a_process_whose_calls_go_on() -> None:
    # As a process: Python joins threads that are no daemons at its end.
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(seconds=2 * HANG_LIMIT_S)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=HANG_LIMIT_S)
        finally:
            process.kill()
    assert errors.rstrip().endswith(b"KeyboardInterrupt")
