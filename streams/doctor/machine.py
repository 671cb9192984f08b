"""Check the machine that the doctor runs on: disk space, inodes, open files, memory limits."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)

DISK, INODES, FILES, MEMORY = "disk space", "inodes", "open files", "memory limit"
_FREE_MIN_BYTES = 100 << 20
_FREE_MIN_PART = 0.02
_INODES_MIN = 10_000
_FILES_PER_STORE = 64
"""About what a RocksDB of a store has open at a time: table files, the log, the manifest."""
_FILES_OTHER = 256
_PROCESS_BYTES = 200 << 20
"""About what Python, the clients' buffers and the libraries take beside the budgets."""
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Holds the space of a file system in bytes, and of an application's state on it."""

    path: Path
    free_bytes: int
    total_bytes: int
    free_inodes: int
    total_inodes: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Holds limits of this machine: open files of a process, memory in bytes; None for no limit."""

    open_files: int | None
    memory_bytes: int | None
    memory_source: str = ""


def check_disk_space(usage: DiskUsage) -> Iterator[DoctorFinding]:
    """Compare free space with the state: a compaction or a rebuild needs as much again."""
    place = f"{usage.path} has {format_bytes(usage.free_bytes)} free of "
    place += f"{format_bytes(usage.total_bytes)}, and state of {format_bytes(usage.state_bytes)}"
    root = shlex.quote(str(find_mount_point(usage.path)))
    remedy = f"make room: `du -xah --max-depth=2 {root} | sort -rh | head -20` shows what takes "
    remedy += "most of that disk; or move state_dir to a larger one"
    least = min(_FREE_MIN_BYTES, int(usage.total_bytes * _FREE_MIN_PART))
    if usage.free_bytes < least:
        yield create_error_finding(
            DISK, place, "stores can't be written: threads end, and so does the worker", remedy
        )
    elif usage.free_bytes < usage.state_bytes:
        yield create_warning_finding(
            DISK,
            place,
            "compaction and a rebuild need as much again as the state has",
            remedy,
        )
    else:
        yield create_fine_finding(DISK, place)


def find_mount_point(path: Path) -> Path:
    """Return the directory at which the file system of a path is mounted.

    What fills a disk need not be the application's, so all of the disk is to be looked at. A link
    leads to the file system on which its target is.
    """
    found = path.resolve()
    while not found.is_mount() and found != found.parent:
        found = found.parent
    return found


def check_inodes(usage: DiskUsage) -> Iterator[DoctorFinding]:
    """Find a file system that can't have many more files, however much space it has."""
    if not usage.total_inodes:
        return  # btrfs and others have no such limit
    what = f"{usage.path} has {usage.free_inodes:,} free of {usage.total_inodes:,}"
    if usage.free_inodes < min(_INODES_MIN, usage.total_inodes // 50):
        yield create_error_finding(
            INODES,
            what,
            "files of stores can't be created (No space left on device)",
            "find what has so many files: `du --inodes -x --max-depth=2 "
            f"{shlex.quote(str(find_mount_point(usage.path)))} | sort -rn | head -20`",
        )
    else:
        yield create_fine_finding(INODES, what)


def check_open_files(limits: ProcessLimits, stores: int) -> Iterator[DoctorFinding]:
    """Compare the limit of open files with what the stores of a worker need."""
    needed = _FILES_OTHER + stores * _FILES_PER_STORE
    limit = limits.open_files
    if limit is not None and limit < needed:
        yield create_warning_finding(
            FILES,
            f"a process may have {limit:,} open, and {stores} stores may need {needed:,}",
            "a store can't be opened or compacted (Too many open files)",
            f"`ulimit -n {needed * 2}` before the worker, or LimitNOFILE={needed * 2} in its unit",
        )
    else:
        shown = "without limit" if limit is None else f"up to {limit:,}"
        yield create_fine_finding(FILES, f"{shown}, and {stores} stores may need {needed:,}")


def check_memory_limit(limits: ProcessLimits, budgets_bytes: int) -> Iterator[DoctorFinding]:
    """Compare the memory limit of the container or unit with the budgets of the settings."""
    needed = budgets_bytes + _PROCESS_BYTES
    limit = limits.memory_bytes
    if limit is not None and limit < needed:
        yield create_warning_finding(
            MEMORY,
            f"{limits.memory_source} allows {format_bytes(limit)}, and the settings' budgets with "
            f"the process itself are {format_bytes(needed)}",
            "the kernel kills the worker when its memory grows (OOM), again and again",
            "raise the limit, or lower rocksdb_memory_max_bytes, cache_max_bytes or "
            "statestore_uncommitted_max_bytes",
        )
    else:
        shown = "no limit" if limit is None else f"{format_bytes(limit)} ({limits.memory_source})"
        yield create_fine_finding(MEMORY, f"{shown}; budgets and process: {format_bytes(needed)}")


def format_bytes(count: int) -> str:
    """Return a size in MB, or in GB from 10 GB on."""
    if count >= 10_000 * _MB:
        return f"{count / (1_000 * _MB):,.0f} GB"
    return f"{count / _MB:,.0f} MB" if count >= 10 * _MB else f"{count / _MB:,.1f} MB"
