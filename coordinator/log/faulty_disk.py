"""Injects faults into the calls of another disk (see `faults`).

While no rule is set for the disk, the calls of an open file that can fail are replaced by the other
disk's own: an append then costs what it costs without this file.
"""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from weakref import WeakSet

from coordinator.faults import Faults
from coordinator.log.disk import Disk, File, Lock

_CALLS = ("write", "read", "flush")


class FaultyFile:
    """Passes calls to another file, and fails writes and flushes where a rule says so."""

    def __init__(self, file: File, path: Path, faults: Faults) -> None:
        self._file = file
        self._path = path
        self._faults = faults

    def choose(self) -> None:
        """Call the wrapped file directly while there are no rules, else through this class."""
        if self._faults.on_disk:
            for name in _CALLS:
                self.__dict__.pop(name, None)
        else:
            for name in _CALLS:
                self.__dict__[name] = getattr(self._file, name)

    def write(self, data: bytes | bytearray, at: int) -> None:
        _check(self._faults, "fail-append", self._path, errno.EIO)
        room = self._faults.room_for(len(data), self._path)
        if room < len(data):
            self._file.write(data[:room], at)
            raise _error(errno.ENOSPC, self._path)
        self._file.write(data, at)

    def read(self, count: int, at: int) -> bytes:
        return self._file.read(count, at)

    def size(self) -> int:
        return self._file.size()

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def flush(self) -> None:
        _check(self._faults, "fail-flush", self._path, errno.EIO)
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class FaultyDisk:
    """Passes calls to another disk, and fails writes and flushes where a rule says so."""

    def __init__(self, disk: Disk, faults: Faults) -> None:
        self._disk = disk
        self._faults = faults
        self._lock = threading.Lock()  # rules are set from any thread
        self._open: WeakSet[FaultyFile] = WeakSet()
        faults.when_changed(self._choose)

    def open(self, path: Path) -> File:
        file = FaultyFile(self._disk.open(path), path, self._faults)
        with self._lock:
            self._open.add(file)
        file.choose()  # only now: a thread that sets a rule meanwhile has to find the file
        return file

    def size(self, path: Path) -> int | None:
        return self._disk.size(path)

    def read(self, path: Path) -> bytes | None:
        return self._disk.read(path)

    def replace(self, path: Path, content: bytes) -> None:
        _check(self._faults, "fail-append", path, errno.EIO)
        _check(self._faults, "fail-flush", path, errno.EIO)
        if self._faults.room_for(len(content), path) < len(content):
            raise _error(errno.ENOSPC, path)
        self._disk.replace(path, content)

    def room(self, directory: Path) -> tuple[int, int]:
        return self._disk.room(directory)

    def names(self, directory: Path) -> list[str]:
        return self._disk.names(directory)

    def make_directory(self, path: Path) -> None:
        self._disk.make_directory(path)

    def flush_directory(self, path: Path) -> None:
        _check(self._faults, "fail-flush", path, errno.EIO)
        self._disk.flush_directory(path)

    def rename(self, old: Path, new: Path) -> None:
        self._disk.rename(old, new)

    def remove(self, path: Path) -> None:
        self._disk.remove(path)

    def remove_tree(self, path: Path) -> None:
        self._disk.remove_tree(path)

    def lock(self, path: Path) -> Lock:
        return self._disk.lock(path)

    def _choose(self) -> None:
        """Make every open file bypass this disk if there are no rules, and not if there are."""
        with self._lock:
            files = tuple(self._open)
        for file in files:
            file.choose()


def _check(faults: Faults, action: str, path: Path, number: int) -> None:
    """Raise an OSError with this number if a rule strikes the action on this file."""
    if faults.strike_disk(action, path):
        raise _error(number, path)


def _error(number: int, path: Path) -> OSError:
    return OSError(number, f"{errno.errorcode[number]}, a fault that was asked for", str(path))
