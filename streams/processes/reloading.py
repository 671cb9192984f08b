"""Run an application again whenever a source file of it has changed, for `millrace run --reload`.

A watcher process forks the process that imports and runs the application. That process writes the
paths of the application's modules to a pipe: all modules that are neither installed packages nor
Python's own. The watcher looks at the times of those files, and at a change ends the process with
SIGTERM, so that it commits and leaves the group, and forks another one.

    the process ends      the watcher
    since a file changed  forks another one
    by itself, status 0   ends with it
    by itself, otherwise  waits for the next change: the mistake is in the files
    on SIGTERM, SIGINT    (to the watcher) ends with its status

The process ends by itself when its watcher is gone: it reads the end of a second pipe.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from streams.common.exit_status import ExitStatus
from streams.processes.signals import (
    STOP_SIGNALS,
    StopRequest,
    exit_now,
    flush_standard_streams,
    hold_signals,
    restore_default_signals,
    write_line_to_stderr,
)

_INTERVAL_S = 0.3
_PIPE_BYTES = 1 << 16
_CLOCK_TICK_NS = 20_000_000
"""How far the clock that stamps files may be behind the clock that processes read."""


def run_with_reload(prepare: Callable[[], Callable[[], None]], directory: Path) -> ExitStatus:
    """Run an application and run it again at each change; return the exit status.

    `prepare` imports the application and returns what runs it. Until a first import has succeeded
    the Python files of `directory` are watched as well.
    """
    return _Reloader(prepare, directory).run_until_stopped()


def list_application_files(modules: Iterable[object]) -> list[str]:
    """Return the source files of modules that are neither installed nor Python's own."""
    kept_out = tuple(
        f"{Path(path).resolve()}{os.sep}"
        for path in {
            *(
                sysconfig.get_paths()[name]
                for name in ("stdlib", "platstdlib", "purelib", "platlib")
            ),
            str(Path(__file__).parents[1]),
            str(Path(__file__).parents[2] / "state"),
            str(Path(__file__).parents[2] / "coordinator"),
        }
    )
    found = set()
    for module in modules:
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py"):
            path = str(Path(file).resolve())
            if not path.startswith(kept_out):
                found.add(path)
    return sorted(found)


def read_modification_times_ns(paths: Iterable[str]) -> dict[str, int]:
    """Return when each file was modified, in ns; -1 for one that is not there."""
    times = {}
    for path in paths:
        try:
            times[path] = os.stat(path).st_mtime_ns
        except OSError:
            times[path] = -1
    return times


def find_changes(before: Mapping[str, int]) -> list[str]:
    """Return the files that were modified, or removed, since `before`."""
    now = read_modification_times_ns(before)
    return sorted(path for path, time_ns in before.items() if now[path] != time_ns)


class _ApplicationEnd(NamedTuple):
    exit_code: int
    has_file_changed: bool


class _Reloader:
    """Forks the process that runs the application, and watches the files that it has read."""

    def __init__(self, prepare: Callable[[], Callable[[], None]], directory: Path) -> None:
        self._prepare = prepare
        self._directory = directory
        self._stop = StopRequest()
        self._child = 0
        self._is_told = False
        self._listing = self._lifeline_end = -1
        self._listed = b""
        self._forked_at_ns = 0
        self._times: dict[str, int] = {}

    def run_until_stopped(self) -> ExitStatus:
        """Run until a signal, or until the application has ended well; return the exit status."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._pass_on_stop_signal)
        while True:
            status = self._run_until_success_or_changed_files()
            if status is not None:
                return status

    def _run_until_success_or_changed_files(self) -> ExitStatus | None:
        """Run the application until it ends; return the exit status, or None to run it again."""
        # Before the process reads the files: a change in the meantime is not missed.
        self._times |= read_modification_times_ns(map(str, self._directory.glob("*.py")))
        if self._stop.is_made:
            return 0
        self._fork_application()
        if self._stop.is_made:  # before the process was known
            self._stop_process_once()
        exit_code, is_changed = self._wait_for_end()
        if self._stop.is_made or (exit_code == 0 and not is_changed):
            return self._to_exit_status(exit_code)
        if is_changed:
            return None
        write_line_to_stderr(
            f"the application ended with status {exit_code}; it runs again when a file changes"
        )
        while not self._stop.wait_until_made(_INTERVAL_S):
            if changes := find_changes(self._times):
                self._report_changed_files(changes)
                return None
        return self._to_exit_status(exit_code)

    def _wait_for_end(self) -> _ApplicationEnd:
        """Wait for the process, and stop it when a file has changed."""
        is_changed = False
        while True:
            self._watch_listed_files()
            ended, wait_status = os.waitpid(self._child, os.WNOHANG)
            if ended:
                break
            if not self._is_told and (changes := find_changes(self._times)):
                is_changed = True
                self._report_changed_files(changes)
                self._stop_process_once()
            time.sleep(_INTERVAL_S)
        self._child = 0
        self._watch_listed_files()
        self._close_pipes()
        return _ApplicationEnd(os.waitstatus_to_exitcode(wait_status), is_changed)

    def _report_changed_files(self, changes: list[str]) -> None:
        """Print which files have changed, and watch their present state from now on."""
        self._times |= read_modification_times_ns(changes)
        names = ", ".join(Path(each).name for each in changes)
        write_line_to_stderr(f"{names} changed: the application is started again")

    def _pass_on_stop_signal(self, signal_number: int, _: FrameType | None) -> None:
        """Pass the first signal on to the application, unless it is being stopped, and others."""
        if self._stop.is_made or not self._is_told:
            self._terminate_process()
        self._stop.make_request()

    def _stop_process_once(self) -> None:
        """Tell the process to stop, unless a signal that came just now has told it."""
        with hold_signals(STOP_SIGNALS):
            if not self._is_told:
                self._terminate_process()

    def _terminate_process(self) -> None:
        """Send SIGTERM to the process that runs the application, if there is one.

        It commits and leaves then; at a second one it would end at once.
        """
        if self._child:
            self._is_told = True
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self._child, signal.SIGTERM)

    def _to_exit_status(self, exit_code: int) -> ExitStatus:
        """Return the watcher's exit status after the end of the process."""
        if exit_code >= 0:
            return exit_code
        if self._stop.is_made and -exit_code in STOP_SIGNALS:
            return 0  # before it had handlers, so before it did anything
        return 128 - exit_code

    def _fork_application(self) -> None:
        """Fork the process that runs the application."""
        listing, listing_end = os.pipe()
        lifeline, lifeline_end = os.pipe()
        self._forked_at_ns = time.time_ns()
        self._is_told = False
        flush_standard_streams()
        # Until the process is known here, and has no handlers of the watcher's any more.
        with hold_signals(STOP_SIGNALS):
            child = os.fork()
            if child == 0:
                os.close(listing)
                os.close(lifeline_end)
                os.setpgid(0, 0)  # Ctrl-C reaches the watcher alone, which passes one signal on
                restore_default_signals(STOP_SIGNALS)
                threading.Thread(target=_end_with_watcher, args=(lifeline,), daemon=True).start()
                self._run_application(listing_end)
            self._child = child
        os.close(listing_end)
        os.close(lifeline)
        os.set_blocking(listing, False)
        self._listing, self._listed = listing, b""
        self._lifeline_end = lifeline_end

    def _run_application(self, listing_end: int) -> NoReturn:
        """Import the application, tell its files, run it, and end this process."""
        status = 1
        try:
            try:
                run = self._prepare()
            finally:
                files = list_application_files(list(sys.modules.values()))
                with os.fdopen(listing_end, "wb") as pipe:
                    pipe.write(json.dumps(files).encode())
            run()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            logging.exception("the application ended")
        finally:
            exit_now(status)

    def _watch_listed_files(self) -> None:
        """Watch the files that the process has told, once it has told all."""
        while self._listing >= 0:
            try:
                told = os.read(self._listing, _PIPE_BYTES)
            except BlockingIOError:
                return
            self._listed += told
            if not told:
                os.close(self._listing)
                self._listing = -1
                self._watch_files(self._listed)

    def _watch_files(self, listed: bytes) -> None:
        """Watch the files of a list, which is not whole if the process has been killed."""
        try:
            paths = json.loads(listed)
        except ValueError:
            return
        # Files that were watched before keep their times: they may have changed since. Another one
        # that has changed since the fork may have done so after it was imported.
        safe_ns = self._forked_at_ns - _CLOCK_TICK_NS
        times = read_modification_times_ns(paths)
        known = {path: at_ns if at_ns < safe_ns else 0 for path, at_ns in times.items()}
        self._times = known | self._times

    def _close_pipes(self) -> None:
        if self._listing >= 0:
            os.close(self._listing)
            self._listing = -1
        os.close(self._lifeline_end)


def _end_with_watcher(lifeline: int) -> None:
    """Send this process SIGTERM once its watcher has ended, which closes the pipe's other end."""
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)
