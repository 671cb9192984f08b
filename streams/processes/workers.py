"""Run several worker processes of one application under a process that watches over them.

    a worker ends with     the watcher
    status 0               goes on with the others
    status 75              starts it again after a moment: brokers did not answer, or not in time,
                           which may pass; ends with it if no other worker is left
    another status         ends the others and takes over the status: the mistake is in all of them
    a signal               starts it again: it takes its slot, its tasks and its state back at once;
                           unless it has ended so `_DEATHS_MAX` times in a row within `_QUICKLY_S`

The first SIGTERM or SIGINT is passed on to all; after the second, or when they take longer than
they may, they are killed. Workers end by themselves when their watcher is gone, for whatever
reason.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from types import FrameType
from typing import NamedTuple

from state.linux_calls import open_memory_file
from streams.common.exit_status import ExitStatus
from streams.processes.signals import (
    STOP_SIGNALS,
    describe_signal,
    flush_standard_streams,
    hold_signals,
    restore_default_signals,
    write_line_to_stderr,
)

OUTAGE_STATUS = os.EX_TEMPFAIL
"""The exit status of a worker that no broker answers, or not in time: 75, as in sysexits.h."""
OUTAGE_PAUSE_S = 5.0
_QUICKLY_S = 5.0
_SEE_SIGNALS = " (see MR-083)"
_DEATHS_MAX = 5
_INTERVAL_S = 0.05
_HANDLED_SIGNALS = (*STOP_SIGNALS, signal.SIGALRM)
_GRACE_S = 10.0
"""How much longer than `timeout_s` the watcher waits, since workers end themselves by then."""


class _WorkerProcess(NamedTuple):
    """Represents a worker process: its number and when it was started."""

    number: int
    started_at_s: float


def fork_and_watch_workers(
    count: int, run_worker: Callable[[int], None], *, stop_timeout_s: float
) -> ExitStatus:
    """Run `count` processes that each call `run_worker` with its number; return the exit status.

    Numbers begin at 0. Returns when all processes have ended; `stop_timeout_s` is how long they may
    take to end in order.
    """
    watcher = _Watcher(run_worker, stop_timeout_s)
    for number in STOP_SIGNALS:
        signal.signal(number, watcher.stop_or_kill_workers)
    signal.signal(signal.SIGALRM, watcher.kill_workers)
    for each in range(count):
        watcher.fork_worker(each)
    watcher.wait_for_workers()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return watcher.status


class SharedErrors:
    """Lets only the first of several forked processes report an error that all of them meet.

    They often end with the same one, such as a missing topic, and it is to be read once.
    """

    def __init__(self) -> None:
        self._file = open_memory_file("millrace-errors")
        """The digests of the messages that were claimed, which the processes share."""

    def try_claim_message(self, message: str) -> bool:
        """Return whether no process has claimed this message before; from now on one has."""
        digest = sha256(message.encode(errors="replace")).digest()
        fcntl.lockf(self._file, fcntl.LOCK_EX)  # it is the process's, and flock the file's
        try:
            claimed = os.pread(self._file, os.fstat(self._file).st_size, 0)
            if digest in claimed:
                return False
            os.pwrite(self._file, digest, len(claimed))
            return True
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)


class _Watcher:
    """Starts the worker processes, restarts them after a signal, and ends them."""

    def __init__(self, run: Callable[[int], None], timeout_s: float) -> None:
        self.status = 0
        self._run = run
        self._timeout_s = timeout_s
        self._children: dict[int, _WorkerProcess] = {}
        self._start_times_s: dict[int, float] = {}
        """The numbers of workers that are started again, and the monotonic times at which."""
        self._stopping = False
        self._is_signalled = False
        self._status_if_killed = 0
        self._quick_deaths = 0

    def fork_worker(self, worker_number: int) -> None:
        """Fork a process and start a worker in it, unless the workers are being stopped."""
        # Until the worker is known here, and has no handlers of the watcher's any more.
        with hold_signals(_HANDLED_SIGNALS):
            if self._stopping:
                return
            pid = _fork_process(lambda: self._run(worker_number))
            self._children[pid] = _WorkerProcess(worker_number, time.monotonic())
        if self._stopping:  # another thread has taken the signal before the worker was known
            self._send_signal(signal.SIGTERM)

    def wait_for_workers(self) -> None:
        """Wait until all workers have ended, and restart each that a signal has ended.

        It looks after them at intervals: a signal in the moment before a wait for a process would
        be handled when that process has ended.
        """
        while self._children:
            for pid in tuple(self._children):
                ended, wait_status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    exit_code = os.waitstatus_to_exitcode(wait_status)
                    self._restart_worker_or_stop_others(pid, self._children.pop(pid), exit_code)
            self._start_due_workers()
            if self._children:
                time.sleep(_INTERVAL_S)

    def _start_due_workers(self) -> None:
        """Start the workers again whose brokers were away, unless no other worker is left."""
        if self._start_times_s and not self._children and not self._stopping:
            self.status = OUTAGE_STATUS
            return
        for number, at_s in tuple(self._start_times_s.items()):
            if time.monotonic() >= at_s:
                del self._start_times_s[number]
                self.fork_worker(number)

    def stop_or_kill_workers(self, signal_number: int, frame: FrameType | None) -> None:
        """Handle SIGTERM or SIGINT: the first stops the workers, the second kills them."""
        if self._is_signalled:
            self.kill_workers(signal_number, frame)
            return
        self._is_signalled = True
        self._stop_workers()

    def kill_workers(self, signal_number: int, frame: FrameType | None) -> None:
        """Kill all workers at once: at the second signal, or at SIGALRM when they took too long."""
        self._status_if_killed = 1 if signal_number == signal.SIGALRM else 128 + signal_number
        self._send_signal(signal.SIGKILL)

    def _stop_workers(self) -> None:
        """Send SIGTERM to all workers, and let SIGALRM come when they may take no longer."""
        if self._stopping:
            return
        self._stopping = True
        signal.setitimer(signal.ITIMER_REAL, self._timeout_s + _GRACE_S)
        self._send_signal(signal.SIGTERM)

    def _send_signal(self, number: signal.Signals) -> None:
        """Send a signal to all workers that have not ended."""
        for pid in self._children:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, number)

    def _restart_worker_or_stop_others(
        self, pid: int, worker: _WorkerProcess, exit_code: int
    ) -> None:
        """Handle the end of a worker: restart it, stop the others, or note its exit status."""
        if self._stopping:
            status = self._report_and_find_exit_status(pid, exit_code)
            self.status = self.status or status
            return
        if exit_code == OUTAGE_STATUS:
            write_line_to_stderr(f"worker {pid} has ended, since brokers did not answer in time")
            self._start_times_s[worker.number] = time.monotonic() + OUTAGE_PAUSE_S
            return
        if exit_code < 0:
            quickly = time.monotonic() - worker.started_at_s < _QUICKLY_S
            self._quick_deaths = self._quick_deaths + 1 if quickly else 0
            if self._quick_deaths < _DEATHS_MAX:
                name = describe_signal(-exit_code)
                write_line_to_stderr(
                    f"worker {pid} was ended by {name}: started again{_SEE_SIGNALS}"
                )
                self.fork_worker(worker.number)
                return
        if exit_code != 0:
            self.status = exit_code if exit_code > 0 else 1
            self._stop_workers()

    def _report_and_find_exit_status(self, pid: int, exit_code: int) -> ExitStatus:
        """Return the exit status for the end of a worker that was told to stop."""
        if exit_code >= 0:
            return exit_code
        if -exit_code in STOP_SIGNALS:  # before it had handlers, so before it did anything
            return 0
        write_line_to_stderr(
            f"worker {pid} was ended by {describe_signal(-exit_code)}, without a commit"
        )
        return self._status_if_killed or 128 - exit_code


def is_watcher_gone(watcher: int) -> bool:
    """Return whether this process's parent has ended, so that another has adopted it."""
    return os.getppid() != watcher


def _fork_process(run_in_child: Callable[[], None]) -> int:
    """Fork a process that calls `run_in_child` and exits, and return its process id.

    The caller has blocked the signals that the watcher handles.
    """
    flush_standard_streams()
    child = os.fork()
    if child:
        return child
    status = 0
    try:
        restore_default_signals(_HANDLED_SIGNALS)
        run_in_child()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        logging.exception("a worker ended")
        status = 1
    flush_standard_streams()
    os._exit(status)
