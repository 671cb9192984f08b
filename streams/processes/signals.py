"""Handle the signals that end a worker: the first in order and in bounded time, the second at once.

    SIGTERM, SIGINT   the first: `stop`. The worker commits, leaves its group and ends with status
                      0; or, when `timeout_s` has passed, with status 1 and a message that says
                      what keeps it. Where not even that gets through (C code that keeps the
                      interpreter lock) the stacks of all threads are printed instead.
    again             the process ends at once, with status 128 and the signal's number

Nothing is lost either way: what was not committed is processed again by whoever gets the tasks.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from streams.common.exit_status import ExitStatus

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_GRACE_S = 5.0
"""How much longer than `timeout_s` a worker may take to say what keeps it."""


class StopRequest:
    """Tells the main thread to stop, from a signal handler.

    A handler runs between two steps of the main thread, which may be waiting. An Event's `wait` and
    `set` take the same lock, so that a handler that sets it can wait for that lock for ever.
    """

    def __init__(self) -> None:
        self.is_made = False
        self._lock = threading.Lock()
        """Is held, so that a wait for it ends when `make_request` releases it."""
        self._lock.acquire()

    def make_request(self) -> None:
        """Make the request, which ends a wait for it."""
        self.is_made = True
        with suppress(RuntimeError):  # it has been released before
            self._lock.release()

    def wait_until_made(self, timeout_s: float) -> bool:
        """Wait for the request for up to `timeout_s` seconds; return whether it has been made.

        A signal in the moment before the thread waits is handled after the wait, as Python does it:
        so wait in short steps.
        """
        if not self.is_made:
            self._lock.acquire(timeout=timeout_s)
        return self.is_made


@contextmanager
def hold_signals(numbers: Iterable[signal.Signals]) -> Iterator[None]:
    """Hold signals back from this thread until the block has ended, or a fork unblocks them.

    Another thread may take them meanwhile, and the handler then runs in the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def restore_default_signals(numbers: Iterable[signal.Signals]) -> None:
    """Give a forked process the default handlers of signals, and let them through."""
    for number in numbers:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def install_stop_handlers(
    on_signal: Callable[[], None], *, timeout_s: float, is_watched: bool = False
) -> None:
    """Install handlers for SIGTERM and SIGINT that call `on_signal`, and bound the shutdown.

    A worker that `is_watched` leaves the second signal to its watcher: a terminal, or an init
    system, sends the first to the whole process group, so that it would come twice.
    """
    stopping = False

    def handle_signal(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        if stopping and not is_watched:
            write_line_to_stderr("stopped at once, without a commit")
            exit_now(128 + number)
        if not stopping:
            stopping = True
            on_signal()
            # By number: sys.stderr may be a file of Python's, or none.
            faulthandler.dump_traceback_later(timeout_s + _GRACE_S, exit=True, file=2)

    for number in STOP_SIGNALS:
        signal.signal(number, handle_signal)


def describe_signal(number: int) -> str:
    """Return the name of a signal, or its number if it is a real-time signal without one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def write_line_to_stderr(text: str) -> None:
    """Write a line to standard error, if anybody reads it; a signal handler may call this."""
    with suppress(OSError):
        os.write(2, f"millrace: {text}\n".encode())


def cancel_shutdown_limit() -> None:
    """Cancel the time limit that a stop signal has set for the shutdown."""
    faulthandler.cancel_dump_traceback_later()


def flush_standard_streams() -> None:
    """Flush what was printed, so that it is neither lost at the end nor doubled by a fork."""
    for stream in (sys.stdout, sys.stderr):
        # It was being written to, is closed, or is none.
        with suppress(OSError, RuntimeError, ValueError, AttributeError):
            stream.flush()


def exit_now(exit_status: ExitStatus) -> NoReturn:
    """Flush the standard streams and end the process now, whatever its threads are doing."""
    flush_standard_streams()
    os._exit(exit_status)
