"""Run a process that works on a database and ends itself with SIGKILL where the test says."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.processes import HANG_LIMIT_S

_PRELUDE = """
import os, signal, sys
from pathlib import Path
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
path = Path(sys.argv[1])
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def records(first, last):
    return {b"%09d" % n: b"v" * 100 for n in range(first, last)}
"""


def run_until_killed(path: Path, body: str) -> None:
    """Run `body` on the directory `path`, and assert that it ended by `die()`."""
    code = _PRELUDE + textwrap.dedent(body)
    ended = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
