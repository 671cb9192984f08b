"""Call what only Linux has, each with what other systems have in its place.

`state` and `streams` call it here and nowhere else (a unit test sees to it), so that an
application can be developed on macOS; `coordinator/linux_calls.py` is the broker's. Each function
asks the system when it is called: so a test hides what Linux has, and runs an application.

    here                        Linux                       elsewhere
    open_memory_file            memfd_create                a temporary file without a name
    PrivateFile                 /dev/fd/N of such a file    a file that its owner alone can read
    find_memory_file_system     /dev/shm                    none: what asks takes TMPDIR
    read_memory_limit           the limits of its cgroups   none
    list_open_files             /proc/self/fd               none: how many there are is not known
    find_removed_files          /proc/*/fd                  none: nobody else's are known
    find_listening_process_ids              /proc/net/tcp, /proc/*/fd   none: nobody's are known
    is_stopped                  /proc/N/stat                no: it is not known
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from weakref import finalize

MEMORY_FILE_SYSTEM = Path("/dev/shm")  # nosec B108 # tempfile makes the names in it
"""The directory of a file system in memory, on Linux."""
_CGROUPS = Path("/sys/fs/cgroup")
_DESCRIPTORS = Path("/proc/self/fd")
_PROCESSES, _REMOVED = Path("/proc"), " (deleted)"
_LISTENING, _STOPPED = "0A", ("T", "t")
_UNLIMITED_BYTES = 1 << 60
"""About what version 1 of cgroups shows where there is no limit."""


def open_memory_file(name: str) -> int:
    """Return the descriptor of an empty file that no directory lists, in memory on Linux.

    Processes that are forked share it. `name` is for those who look at a process from outside.
    Elsewhere it lies on the disk of TMPDIR, and is gone with its last process just as well.
    """
    if hasattr(os, "memfd_create"):
        file_descriptor: int = os.memfd_create(name)
        return file_descriptor
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class PrivateFile(str):
    """Holds bytes in memory at a path that this process can open as often as it likes.

    So whoever holds the path, such as the settings of a client, holds the file: it is gone with
    this text. On Linux it is in memory and has no name. Elsewhere /dev/fd gives no second reader a
    position of its own, so that the bytes lie in TMPDIR, readable by their owner only; a process
    that is killed leaves them there.
    """

    __slots__ = ("__weakref__",)

    def __new__(cls, data: bytes, name: str) -> PrivateFile:
        if not hasattr(os, "memfd_create"):
            return cls._write_named(data, name)
        descriptor = os.memfd_create(name)
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(data)
        except OSError:
            os.close(descriptor)
            raise
        path = super().__new__(cls, f"/dev/fd/{descriptor}")
        finalize(path, os.close, descriptor).atexit = False
        return path

    @classmethod
    def _write_named(cls, data: bytes, name: str) -> PrivateFile:
        """Write bytes to a file that this process removes with the path, or at its own end."""
        descriptor, named = tempfile.mkstemp(prefix=f"{name}-")  # its mode is 0600
        path = super().__new__(cls, named)
        finalize(path, _remove_own_file, named, os.getpid())
        with open(descriptor, "wb") as file:
            file.write(data)
        return path


def _remove_own_file(path: str, owner_pid: int) -> None:
    """Remove a file, unless this process is a fork of the one that has written it."""
    if os.getpid() == owner_pid:
        with suppress(OSError):
            os.unlink(path)


def find_memory_file_system() -> Path | None:
    """Return the directory of a file system in memory that this process can write to, if any."""
    can_write = os.access(MEMORY_FILE_SYSTEM, os.W_OK | os.X_OK)
    return MEMORY_FILE_SYSTEM if can_write else None


class MemoryLimit(NamedTuple):
    """Represents a limit of a cgroup's memory, and the file that has it."""

    bytes_max: int
    file: Path


def read_memory_limit() -> MemoryLimit | None:
    """Return the least memory limit of this process's cgroups in bytes, with the file that has it.

    None where there is no limit, and on systems without cgroups.
    """
    limits = []
    for file in _list_limit_files():
        with suppress(OSError, ValueError):  # "max" is no limit
            limits.append(MemoryLimit(int(file.read_text()), file))
    found = min(limits, default=None)
    return None if found is None or found.bytes_max >= _UNLIMITED_BYTES else found


def _list_limit_files() -> Iterator[Path]:
    """Yield the files with memory limits of this process: of its cgroup and those above."""
    yield from (_CGROUPS / "memory.max", _CGROUPS / "memory" / "memory.limit_in_bytes")
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, _, path = line.split(":", 2)
            if number == "0":
                group = _CGROUPS / path.lstrip("/")
                yield from (each / "memory.max" for each in (group, *group.parents))


def list_open_files() -> list[str] | None:
    """Return the path of each open file of this process, None where the system doesn't tell."""
    if not _DESCRIPTORS.is_dir():
        return None
    paths = []
    for name in os.listdir(_DESCRIPTORS):
        with suppress(OSError):  # it may be closed by now
            paths.append(os.readlink(_DESCRIPTORS / name))
    return paths


def find_removed_files(directory: Path, name: str) -> dict[int, Path]:
    """Return the files of a name below a directory that were removed, and that processes have open.

    By the process's id. Those of processes that this user may not look at are left out.
    """
    found: dict[int, Path] = {}
    start, end = f"{directory.absolute()}{os.sep}", f"{os.sep}{name}{_REMOVED}"
    for process in _PROCESSES.iterdir() if _PROCESSES.is_dir() else ():
        if not process.name.isdecimal():
            continue
        with suppress(OSError):
            for each in (process / "fd").iterdir():
                with suppress(OSError):  # closed meanwhile
                    target = os.readlink(each)
                    if target.startswith(start) and target.endswith(end):
                        found[int(process.name)] = Path(target.removesuffix(_REMOVED))
    return found


def find_listening_process_ids(port: int) -> list[int]:
    """Return the ids of this machine's processes that listen at a TCP port.

    Those that this user may not look at are left out.
    """
    sockets = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROCESSES / "net" / table).read_text().splitlines()[1:]:
                _, local, _, state, *_, inode = line.split()[:10]
                if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{inode}]")
    found = []
    for process in _PROCESSES.iterdir() if sockets else ():
        if not process.name.isdecimal():
            continue
        with suppress(OSError):
            if any(os.readlink(each) in sockets for each in (process / "fd").iterdir()):
                found.append(int(process.name))
    return sorted(found)


def is_stopped(process_id: int) -> bool:
    """Return whether a process of this machine is stopped by a signal, such as SIGSTOP."""
    try:
        fields = (_PROCESSES / str(process_id) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return bool(fields) and fields[0] in _STOPPED
