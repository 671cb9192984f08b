"""Test that a stop requested by a signal handler reaches a waiting main thread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from streams.processes.signals import StopRequest

# The waits are short, so that many of the signals come while the main thread begins or ends one.
# With an Event in the place of the request, it waits for itself within 1 000 of them.
SIGNALLED = """
import random, signal
from streams.processes.signals import StopRequest

delays = random.Random(22)
for _ in range(5_000):
    stop = StopRequest()
    signal.signal(signal.SIGALRM, lambda *_: stop.make_request())
    signal.setitimer(signal.ITIMER_REAL, delays.uniform(1e-5, 4e-4))
    while not stop.wait_until_made(1e-5):
        pass
"""


def test_a_request_is_seen_wherever_the_signal_finds_the_main_thread() -> None:
    subprocess.run([sys.executable, "-c", SIGNALLED], check=True, timeout=30)


def test_a_request_ends_a_wait_at_once() -> None:
    stop = StopRequest()
    assert not stop.wait_until_made(0)
    before = signal.signal(signal.SIGALRM, lambda *_: stop.make_request())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        began_s = time.monotonic()
        assert stop.wait_until_made(30)
        assert time.monotonic() - began_s < 15
        assert stop.wait_until_made(30)
    finally:
        signal.signal(signal.SIGALRM, before)


WITHOUT_STANDARD_ERROR = """
import os, signal, sys
from streams.processes.signals import StopRequest, cancel_shutdown_limit, install_stop_handlers

sys.stderr = None
stop = StopRequest()
install_stop_handlers(stop.make_request, timeout_s=30)
os.kill(os.getpid(), signal.SIGTERM)
cancel_shutdown_limit()
sys.exit(0 if stop.wait_until_made(5) else 1)
"""


def test_a_signal_stops_a_process_without_standard_error() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_STANDARD_ERROR], check=True, timeout=30)


SIGNALLED_TWICE = """
import os, signal, sys, time
from streams.processes.signals import StopRequest, install_stop_handlers

stop = StopRequest()
install_stop_handlers(stop.make_request, timeout_s=30)
os.kill(os.getpid(), signal.SIGTERM)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(10)
"""


def test_the_second_signal_ends_a_process_whose_standard_error_nobody_reads() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-c", SIGNALLED_TWICE]
    ended = subprocess.run(command, stderr=write_end, timeout=30, check=False)
    os.close(write_end)
    assert ended.returncode == 128 + signal.SIGTERM
