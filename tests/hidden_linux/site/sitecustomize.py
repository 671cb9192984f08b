"""Take from each Python process with this directory on PYTHONPATH what only Linux has.

Functions and constants are gone, files of /proc, /sys and /dev/shm are not found, and the limit on
open files is as on macOS. Libraries in C go on as they are.
"""

from __future__ import annotations

import importlib
import os
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.hidden_linux.names import LINUX_DIRECTORIES, LINUX_NAMES

real_access = os.access
OPEN_FILES_MAX = 10_240
HARD_LIMIT = resource.RLIM_INFINITY


def hide_directories(event: str, arguments: tuple[object, ...]) -> None:
    """Let a file that only Linux has be none."""
    if event in ("open", "os.listdir", "os.scandir") and arguments:
        path = arguments[0]
        if isinstance(path, str) and path.startswith(LINUX_DIRECTORIES):
            raise FileNotFoundError(2, "No such file or directory", path)


def access(path: object, mode: int, **more: bool) -> bool:
    """Return whether a file can be used: one that only Linux has can't."""
    return not str(path).startswith(LINUX_DIRECTORIES) and real_access(path, mode, **more)  # type: ignore[arg-type]


def set_limit(kind: int, limits: tuple[int, int]) -> None:
    """Refuse what macOS refuses: more open files than its OPEN_MAX."""
    if kind == resource.RLIMIT_NOFILE and not 0 <= limits[0] <= OPEN_FILES_MAX:
        raise ValueError("current limit exceeds maximum limit")


for module_name, names in LINUX_NAMES.items():
    module = importlib.import_module(module_name)
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
sys.addaudithook(hide_directories)
os.access = access  # type: ignore[assignment]
resource.setrlimit = set_limit
resource.getrlimit = lambda kind: (256, HARD_LIMIT)
