"""Read how much room the disk of a state directory has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class StateDiskSpace(NamedTuple):
    """Holds the bytes of a file system, and those of them that this user may still write."""

    free_bytes: int
    total_bytes: int


def read_disk_space(path: Path) -> StateDiskSpace | None:
    """Return the space of the disk of a directory; None if it can't be read, as one that is gone.

    The last bytes of a disk are often kept for root.
    """
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    free = found.f_bavail if os.geteuid() else found.f_bfree
    return StateDiskSpace(free * found.f_frsize, found.f_blocks * found.f_frsize)
