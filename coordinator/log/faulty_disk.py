"""Inject faults into the calls of another disk (see `faults`), and measure its flushes.

While no rule is set for the disk, the calls of an open file that can fail are replaced by the other
disk's own: an append then costs what it costs without this file.
"""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from weakref import WeakSet

from coordinator.clock import Clock, SystemClock
from coordinator.faults import Faults
from coordinator.log.disk import BrokerDisk, DiskLock, DiskSpace, File
from coordinator.log.flush_times import FlushTimes

_CALLS = ("write", "read")


class FaultyFile:
    """Passes calls to another file, and fails writes and flushes where a rule says so."""

    def __init__(self, file: File, path: Path, faults: Faults, flush_times: FlushTimes) -> None:
        self._flush_times = flush_times
        self._file = file
        self._path = path
        self._faults = faults

    def bypass_if_no_rules(self) -> None:
        """Call the wrapped file directly while there are no rules, else through this class."""
        if self._faults.disk_rules:
            for name in _CALLS:
                self.__dict__.pop(name, None)
        else:
            for name in _CALLS:
                self.__dict__[name] = getattr(self._file, name)

    def write(self, data: bytes | bytearray, position: int) -> None:
        _raise_if_struck(self._faults, "fail-append", self._path, errno.EIO)
        room = self._faults.take_disk_space(len(data), self._path)
        if room < len(data):
            self._file.write(data[:room], position)
            raise _make_os_error(errno.ENOSPC, self._path)
        self._file.write(data, position)

    def read(self, count: int, position: int) -> bytes:
        return self._file.read(count, position)

    def size(self) -> int:
        return self._file.size()

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def flush(self) -> None:
        if self._faults.disk_rules:
            _raise_if_struck(self._faults, "fail-flush", self._path, errno.EIO)
        begin_ns = self._flush_times.read_ns()
        self._file.flush()
        self._flush_times.record_flush(begin_ns)

    def close(self) -> None:
        self._file.close()


class FaultyDisk:
    """Passes calls to another disk, and fails writes and flushes where a rule says so."""

    def __init__(self, disk: BrokerDisk, faults: Faults, clock: Clock | None = None) -> None:
        self.flush_times = FlushTimes(clock or SystemClock())
        self._disk = disk
        self._faults = faults
        self._lock = threading.Lock()  # rules are set from any thread
        self._open: WeakSet[FaultyFile] = WeakSet()
        faults.add_change_listener(self._update_bypass_of_open_files)

    def open_file(self, path: Path) -> File:
        file = FaultyFile(self._disk.open_file(path), path, self._faults, self.flush_times)
        with self._lock:
            self._open.add(file)
        # Only now: a thread that sets a rule meanwhile has to find the file.
        file.bypass_if_no_rules()
        return file

    def file_size(self, path: Path) -> int | None:
        return self._disk.file_size(path)

    def read_file(self, path: Path) -> bytes | None:
        return self._disk.read_file(path)

    def replace_file(self, path: Path, content: bytes) -> None:
        _raise_if_struck(self._faults, "fail-append", path, errno.EIO)
        _raise_if_struck(self._faults, "fail-flush", path, errno.EIO)
        if self._faults.take_disk_space(len(content), path) < len(content):
            raise _make_os_error(errno.ENOSPC, path)
        self._disk.replace_file(path, content)

    def measure_space(self, directory: Path) -> DiskSpace:
        return self._disk.measure_space(directory)

    def list_names(self, directory: Path) -> list[str]:
        return self._disk.list_names(directory)

    def make_directory(self, path: Path) -> None:
        self._disk.make_directory(path)

    def flush_directory(self, path: Path) -> None:
        _raise_if_struck(self._faults, "fail-flush", path, errno.EIO)
        self._disk.flush_directory(path)

    def rename_path(self, old: Path, new: Path) -> None:
        self._disk.rename_path(old, new)

    def remove_file(self, path: Path) -> None:
        self._disk.remove_file(path)

    def remove_tree(self, path: Path) -> None:
        self._disk.remove_tree(path)

    def lock_file(self, path: Path) -> DiskLock:
        return self._disk.lock_file(path)

    def _update_bypass_of_open_files(self) -> None:
        """Let every open file bypass this disk while there are no rules, which inject faults."""
        with self._lock:
            files = tuple(self._open)
        for file in files:
            file.bypass_if_no_rules()


def _raise_if_struck(faults: Faults, action: str, path: Path, error_number: int) -> None:
    """Raise an OSError with this number if a rule strikes the action on this file."""
    if faults.count_disk_call(action, path):
        raise _make_os_error(error_number, path)


def _make_os_error(error_number: int, path: Path) -> OSError:
    return OSError(
        error_number, f"{errno.errorcode[error_number]}, a fault that was asked for", str(path)
    )
