"""Give the files of a test run a directory in memory, which the next run removes if it is left.

A run that is killed can't remove what it has written, and memory is short. The directory's name has
the run's process id, so that the next one knows whether anybody still uses it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

_PREFIX = "millrace-tests-"


def has_free_gigabyte(memory_disk: Path) -> bool:
    """Return whether there is such a disk, and a gigabyte is free on it."""
    return memory_disk.is_dir() and shutil.disk_usage(memory_disk).free >= 1 << 30


def create_run_directory(
    memory_disk: Path, has_room: Callable[[Path], bool] = has_free_gigabyte
) -> Path | None:
    """Create the directory of this process, or return None if there is no room for it.

    Those of runs that have ended are removed before: they may be what takes the room.
    """
    for left in find_left_directories(memory_disk):
        shutil.rmtree(left, ignore_errors=True)
    if not has_room(memory_disk):
        return None
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
