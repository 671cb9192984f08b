"""Provide the state directory of a driver, and keep what kill -9 leaves of it.

It is made with the first store on disk and removed at the end. A killed process leaves its files as
they are at that moment: so they are copied before the databases are closed, which would put them in
order.

A process dies in these tests, and never the machine, so nothing has to reach a disk. RocksDB waits
for the disk some fifteen times as a store is closed and opened again, which was all that a restart
cost: the directory is in the machine's memory where there is a file system for that.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeAlias
from weakref import finalize

from state.directory import StateDirectory
from state.linux_calls import find_memory_file_system
from state.locks import ProcessFileLock
from state.subtopologies import SubtopologyContents

FileDescriptor: TypeAlias = int

FilePath: TypeAlias = str
SizeBytes: TypeAlias = int
ModifiedNs: TypeAlias = int

_ATTEMPTS = 1_000
_NAME_PREFIX = "millrace-driver-"
_MEMORY_FREE_BYTES_MIN = 48 << 20
"""Containers often have 64 MiB there, and a store that is small takes less than 100 KiB."""
_ABANDONED_AFTER_S = 600.0


class TemporaryStateDirectory(StateDirectory):
    """Provides directories of tasks below a temporary directory.

    It overrides all of its base that other processes need, such as locks: there are none.
    `memory` is a file system in memory, the machine's by default. It is taken unless TMPDIR names
    another place.
    """

    def __init__(self, memory: Path | None = None) -> None:
        self._memory = memory or find_memory_file_system()
        self._root: Path | None = None
        self._process_number = 0

    def assign_and_save_directory_numbers(
        self, subtopologies: Mapping[int, SubtopologyContents]
    ) -> dict[int, int]:
        """Return each sub-topology's own number: no earlier version has left directories."""
        return {number: number for number in subtopologies}

    def list_store_names(self, task_name: str) -> frozenset[str]:
        """Return no names: stores that an earlier process left are not looked for."""
        return frozenset()

    def lock_task(self, task_name: str) -> ProcessFileLock:
        """Return a lock without effect: no other process could want the task."""
        return _NoLock()

    def build_store_path(self, task_name: str, store_name: str) -> Path:
        """Return the path of a task's store in the current process's directory."""
        return self._ensure_process_directory() / task_name / store_name

    def build_former_store_path(self, task_name: str, store_name: str) -> Path:
        """Return the path to which a store is moved whose task went on in another process."""
        return self._ensure_process_directory() / f"former-{task_name}-{store_name}"

    def build_global_store_path(self, slot: int, store_name: str) -> Path:
        """Return the path of a global table's store in the current process's directory."""
        return self._ensure_process_directory() / "global" / store_name

    def _ensure_process_directory(self) -> Path:
        """Return the current process's directory; make the temporary one if there is none."""
        if self._root is None:
            parent = None if os.environ.get("TMPDIR") else _prepare_memory_directory(self._memory)
            self._root = Path(mkdtemp(prefix=_NAME_PREFIX, dir=parent))
            lock = _lock_directory(self._root)
            self._removal = finalize(self, _remove_tree, self._root, lock)
        return self._root / f"life-{self._process_number}"

    def switch_to_copy(self) -> Path | None:
        """Copy the directory, use the copy from now on, and return the old directory.

        The caller removes the old one when its databases are closed. None if nothing is on disk.
        """
        self._process_number += 1
        if self._root is None:
            return None
        before, after = (
            self._root / f"life-{n}" for n in (self._process_number - 1, self._process_number)
        )
        if before.exists():
            _copy_at_one_moment(before, after)
        return before

    def remove_directory(self) -> None:
        """Remove the temporary directory, if it was made."""
        if self._root is not None:
            self._removal()


def _prepare_memory_directory(memory: Path | None) -> Path | None:
    """Return the file system in memory if it can be used, once abandoned directories are gone.

    They are removed since they would take memory until the machine is started again.
    """
    try:
        if memory is None or not os.access(memory, os.W_OK | os.X_OK):
            return None
        _remove_abandoned_directories(memory)
        return memory if shutil.disk_usage(memory).free >= _MEMORY_FREE_BYTES_MIN else None
    except OSError:
        return None


def _remove_abandoned_directories(parent: Path) -> None:
    """Remove the directories of drivers whose processes were killed: nobody holds their locks.

    One that is new may not be locked yet.
    """
    for directory in parent.glob(f"{_NAME_PREFIX}*"):
        with suppress(OSError):  # another user's, or another process removes it
            if time.time() - directory.stat().st_mtime < _ABANDONED_AFTER_S:
                continue
            _remove_tree(directory, _lock_directory(directory))


def _lock_directory(directory: Path) -> FileDescriptor:
    """Lock a directory until its file descriptor, which is returned, is closed.

    Raises OSError where another process has it.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_tree(directory: Path, lock: int) -> None:
    """Remove a directory, retrying while databases that nobody closed add files to it.

    Then its lock is closed.
    """
    for _ in range(_ATTEMPTS):
        if not directory.exists():
            break
        shutil.rmtree(directory, ignore_errors=True)
    os.close(lock)


def _copy_at_one_moment(source: Path, target: Path) -> None:
    """Copy a directory as it is at one moment, retrying while its files change.

    No store is written; but RocksDB may be compacting, which adds files and removes others. So a
    copy counts only if nothing has changed meanwhile.
    """
    for _ in range(_ATTEMPTS):
        files_before = _list_files(source)
        with suppress(shutil.Error):
            shutil.copytree(source, target)
            if files_before == _list_files(source):
                return
        shutil.rmtree(target)
    raise RuntimeError(f"{source} goes on changing: it can't be copied as it is")


def _list_files(directory: Path) -> list[tuple[FilePath, SizeBytes, ModifiedNs]]:
    """Return paths, sizes and modification times of all files below a directory, sorted."""
    found = []
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            with suppress(FileNotFoundError):
                about = os.stat(path)
                found.append((path, about.st_size, about.st_mtime_ns))
    return sorted(found)


class _NoLock(ProcessFileLock):
    """Implements a lock without effect, as no other process could hold it."""

    def __init__(self) -> None:
        """Acquire no lock."""

    def release(self) -> None:
        """Release no lock."""
