"""Start processes that hold what a test tells them to, until they are killed or told to go on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PRELUDE = """
import sys, time, uuid, pathlib
from state.directory import StateDirectory
from state.errors import DirectoryLocked
directory = StateDirectory(pathlib.Path(sys.argv[1]), "app")
"""


def start_process(state_dir: Path, body: str) -> subprocess.Popen[str]:
    """Start a process that runs `body` with the variable `directory` in scope."""
    return subprocess.Popen(
        [sys.executable, "-c", _PRELUDE + body, str(state_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def hold_in_process(state_dir: Path, body: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that has run `body`, and kill it at the end."""
    process = start_process(state_dir, body + "\nprint('held', flush=True); sys.stdin.read()\n")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()
