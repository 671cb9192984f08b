"""Give the files of a test run a directory in memory, which the next run removes if it is left.

A run that is killed can't remove what it has written, and memory is short. The directory's name has
the run's process id, so that the next one knows whether anybody still uses it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "millrace-tests-"


def create_run_directory(memory_disk: Path) -> Path:
    """Create the directory of this process, after those of runs that have ended are removed."""
    for left in find_left_directories(memory_disk):
        shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=compose_prefix(), dir=memory_disk))


def compose_prefix() -> str:
    """Return how the name of a directory of this process begins."""
    return f"{_PREFIX}{os.getpid()}-"


def find_left_directories(memory_disk: Path) -> list[Path]:
    """Return the directories of runs whose process has ended."""
    found = []
    for directory in memory_disk.glob(f"{_PREFIX}*-*"):
        pid = directory.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdecimal() and not _is_alive(int(pid)):
            found.append(directory)
    return found


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
