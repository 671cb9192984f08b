"""Test `run --reload`: which files are watched, and what becomes of a process at a change."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import streams.app
from streams.processes.reloading import (
    find_changes,
    list_application_files,
    read_modification_times_ns,
)
from tests.processes import HANG_LIMIT_S, wait_until

WATCHER = """
import importlib, sys
from pathlib import Path
from streams.processes.reloading import run_with_reload

def prepare():
    sys.path.insert(0, {directory!r})
    return importlib.import_module("program").run

sys.exit(run_with_reload(prepare, Path({directory!r})))
"""
PROGRAM = """
import os, signal, sys, time
import {helper}
stopped = []
def run():
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stopped.append(True))
    print("began", {helper}.NAME, os.getpid(), flush=True)
    while not stopped:
        time.sleep(0.05)
    print("ended", {helper}.NAME, flush=True)
"""


class Reloaded:
    """Runs a program under the watcher, in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.helpers = directory / "lib"
        self.helpers.mkdir()
        self.log = directory / "log"
        self.change("lib/first.py", "NAME = 'one'")
        self.change("program.py", PROGRAM.format(helper="first"))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", WATCHER.format(directory=str(directory))],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(self.helpers), *sys.path])},
            )

    def change(self, name: str, text: str) -> None:
        """Write a file at once, and with a time that differs from its last one by a second.

        Python takes bytecode for up to date by the seconds of the time and the size of the source.
        """
        path = self.directory / name
        before = path.stat().st_mtime_ns if path.exists() else 0
        fresh = path.with_suffix(".new")
        fresh.write_text(text)
        time_ns = max(fresh.stat().st_mtime_ns, before + 1_000_000_000)
        os.utime(fresh, ns=(time_ns, time_ns))
        fresh.replace(path)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until a whole line of the log matches, and return the match."""
        found: list[re.Match[str]] = []

        def is_logged() -> bool:
            found.extend(re.finditer(f"^{pattern}\n", self.log.read_text(), re.MULTILINE))
            return bool(found) or self.process.poll() is not None

        wait_until(is_logged, what=lambda: f"{pattern} in {self.log.read_text()}")
        assert found, self.log.read_text()
        return found[0]

    def pid_of(self, name: str) -> int:
        """Return the id of the process that began with a name, when it has."""
        return int(self.wait_for(rf"began {name} (\d+)")[1])


@pytest.fixture
def reloaded(tmp_path: Path) -> Iterator[Reloaded]:
    started = Reloaded(tmp_path)
    yield started
    started.process.kill()
    started.process.wait(HANG_LIMIT_S)


def test_a_change_of_an_imported_file_ends_the_process_in_order_and_runs_it_again(
    reloaded: Reloaded,
) -> None:
    first = reloaded.pid_of("one")
    reloaded.change("lib/first.py", "NAME = 'two'")
    assert reloaded.pid_of("two") != first
    assert "ended one" in reloaded.log.read_text()
    assert "first.py changed: the application is started again" in reloaded.log.read_text()


def test_a_mistake_is_told_and_its_correction_runs(reloaded: Reloaded) -> None:
    reloaded.pid_of("one")
    reloaded.change("program.py", "1 +")
    reloaded.wait_for(".*it runs again when a file changes")
    assert "SyntaxError" in reloaded.log.read_text()
    reloaded.change("lib/second.py", "NAME = 'two'")
    reloaded.change("program.py", PROGRAM.format(helper="second"))
    reloaded.pid_of("two")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_both_in_order(reloaded: Reloaded, number: signal.Signals) -> None:
    reloaded.pid_of("one")
    reloaded.process.send_signal(number)
    assert reloaded.process.wait(HANG_LIMIT_S) == 0
    assert "ended one" in reloaded.log.read_text()


def test_no_process_outlives_its_watcher(reloaded: Reloaded) -> None:
    pid = reloaded.pid_of("one")
    reloaded.process.kill()
    reloaded.process.wait(HANG_LIMIT_S)
    reloaded.process.returncode = -signal.SIGKILL
    wait_until(lambda: "ended one" in reloaded.log.read_text(), what="the program to end")
    wait_until(lambda: not is_running(pid), what="the process to end")


def is_running(pid: int) -> bool:
    """Return whether a process runs: one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def make_module(file: str | None) -> ModuleType:
    module = ModuleType("made")
    module.__file__ = file
    return module


def test_installed_packages_and_our_own_are_not_watched(tmp_path: Path) -> None:
    mine = str(tmp_path / "mine.py")
    modules = [make_module(mine), make_module(None), make_module("x.so"), pytest, os, streams.app]
    assert list_application_files(modules) == [mine]


@pytest.mark.parametrize(
    "change", [lambda path: path.unlink(), lambda path: os.utime(path, ns=(1, 1))]
)
def test_a_file_that_is_changed_or_gone_is_found(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    paths = [tmp_path / name for name in ("a.py", "b.py", "c.py")]
    for path in paths[:2]:
        path.touch()
    before = read_modification_times_ns(map(str, paths))
    assert find_changes(before) == []
    change(paths[0])
    assert find_changes(before) == [str(paths[0])]
    paths[2].touch()
    assert find_changes(before) == [str(paths[0]), str(paths[2])]


# A signal while the watcher looks at the files, before the process is there.
STOPPED_BEFORE = """
import os, signal, sys, time
from streams.processes.reloading import run_with_reload

class Directory:
    def glob(self, pattern):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)
        return []

sys.exit(run_with_reload(lambda: lambda: time.sleep(60), Directory()))
"""
# A signal that another thread takes while the process is being forked.
STOPPED_DURING = """
import os, signal, sys, threading, time
from streams.processes.reloading import run_with_reload

def send_signal():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)

class Directory:
    def glob(self, pattern):
        return []

threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
os.register_at_fork(after_in_parent=send_signal)
sys.exit(run_with_reload(lambda: lambda: time.sleep(60), Directory()))
"""
# A signal when the process has ended, and has just been waited for.
STOPPED_AFTER = """
import os, signal, sys
from streams.processes import reloading

def wait(pid, options, waitpid=os.waitpid):
    ended = waitpid(pid, options)
    if ended[0]:
        os.kill(os.getpid(), signal.SIGTERM)
    return ended

class Directory:
    def glob(self, pattern):
        return []

os.waitpid = wait
sys.exit(reloading.run_with_reload(lambda: lambda: sys.exit(3), Directory()))
"""


@pytest.mark.parametrize(
    ("script", "status"), [(STOPPED_BEFORE, 0), (STOPPED_DURING, 0), (STOPPED_AFTER, 3)]
)
def test_a_signal_around_the_life_of_the_process_ends_the_watcher(script: str, status: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", script], timeout=30, check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (status, "")


# It takes a second to commit, and says how often it was told to stop.
SLOW_PROGRAM = PROGRAM.replace(
    'print("ended", {helper}.NAME, flush=True)',
    'time.sleep(1)\n    print("ended", {helper}.NAME, "told", len(stopped), flush=True)',
)


@pytest.mark.parametrize("change_first", [True, False])
def test_a_change_and_the_first_signal_stop_the_process_once(
    reloaded: Reloaded, change_first: bool
) -> None:
    reloaded.pid_of("one")
    reloaded.change("program.py", SLOW_PROGRAM.format(helper="first"))
    reloaded.wait_for("ended one")
    wait_until(lambda: reloaded.log.read_text().count("began one") == 2, what="the slow program")
    if change_first:
        reloaded.change("lib/first.py", "NAME = 'two'")
        reloaded.wait_for(".*first.py changed.*")
        reloaded.process.send_signal(signal.SIGINT)
    else:
        reloaded.process.send_signal(signal.SIGINT)
        reloaded.change("lib/first.py", "NAME = 'two'")
    assert reloaded.process.wait(HANG_LIMIT_S) == 0
    assert "ended one told 1\n" in reloaded.log.read_text()


def test_the_second_signal_is_passed_on_too(reloaded: Reloaded) -> None:
    reloaded.pid_of("one")
    reloaded.change("program.py", SLOW_PROGRAM.format(helper="first"))
    reloaded.wait_for("ended one")
    wait_until(lambda: reloaded.log.read_text().count("began one") == 2, what="the slow program")
    reloaded.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    reloaded.process.send_signal(signal.SIGINT)
    assert reloaded.process.wait(HANG_LIMIT_S) == 0
    assert "ended one told 2\n" in reloaded.log.read_text()


# A signal while the watcher reports a change, before it has told the process to stop. The process
# changes the file itself, and ends with the number of signals that it got.
SIGNALLED_IN_REPORT = """
import os, pathlib, signal, sys, time
from streams.processes import reloading

file = pathlib.Path(sys.argv[1])

def run():
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))
    os.utime(file, (1, 1))
    while not told:
        time.sleep(0.05)
    time.sleep(1)
    sys.exit(len(told))

def report(text):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)

reloading.write_line_to_stderr = report
sys.exit(reloading.run_with_reload(lambda: run, file.parent))
"""


def test_a_signal_while_a_change_is_reported_stops_the_process_once(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.touch()
    command = [sys.executable, "-c", SIGNALLED_IN_REPORT, str(file)]
    assert subprocess.run(command, timeout=30, check=False).returncode == 1
