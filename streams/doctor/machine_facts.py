"""Read what the doctor looks at on this machine: file systems, limits, the state directory."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

from state.linux_calls import read_memory_limit
from streams.commands.state_command import find_stores_on_disk
from streams.doctor.machine import DiskUsage, ProcessLimits


def read_disk_usage(path: Path) -> DiskUsage:
    """Read the usage of the file system on which a directory is, or will be."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    found = os.statvfs(place)
    return DiskUsage(
        place,
        found.f_bavail * found.f_frsize,
        found.f_blocks * found.f_frsize,
        found.f_favail,
        found.f_files,
        measure_directory_bytes(path),
    )


def measure_directory_bytes(path: Path) -> int:
    """Return the bytes that the files below a directory take on the disk; 0 if it is not there."""
    total = 0
    for directory, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):  # a file that was removed meanwhile
                total += (Path(directory) / name).lstat().st_blocks * 512
    return total


def read_process_limits() -> ProcessLimits:
    """Read the limits of this process, which a worker started from here would have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = None if soft == resource.RLIM_INFINITY else soft
    limit = read_memory_limit()
    if limit is None:
        return ProcessLimits(open_files, None)
    return ProcessLimits(open_files, limit[0], f"the cgroup ({limit[1]})")


def count_stores(path: Path) -> int:
    """Return how many stores an application has in its directory on this machine."""
    return sum(1 for _ in find_stores_on_disk(path)) if path.is_dir() else 0
