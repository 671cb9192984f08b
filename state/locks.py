"""Lock files between processes by the kernel's flock, which ends when its process ends.

A lock file may be deleted by its holder, together with its directory. A process that had opened it
before then gets a lock on a file that nobody else will find: so a lock counts only if the path
still names the file that was locked.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from state.errors import DirectoryLocked, StateError

_ATTEMPTS = 100
"""The attempts to lock: each fails only if another process deleted the directory meanwhile."""
_COMMAND_CHARS = 200


class LockHolder(NamedTuple):
    """Names the process that has, or had, a lock, and whether it is one of this machine.

    `process_id` is 0 where it can't be read. That of another machine, which has the lock on a disk
    that both share, is that of a stranger here.
    """

    process_id: int
    is_of_this_host: bool


class _LockFileLines(NamedTuple):
    """Holds the lines of a lock file: what the process that has, or had, the lock is called."""

    process_id: str
    command: str
    owner: str
    host: str


@contextmanager
def lock_exclusively(path: Path) -> Iterator[None]:
    """Lock a file for the time of a `with` block, after waiting for processes that have it locked.

    The file stays.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


@contextmanager
def exclude_owner(path: Path) -> Iterator[None]:
    """Hold a lock file in a `with` block, so that nobody changes the files that it guards.

    Several readers may do so at once. A file that does not exist has no owner, and is not created.
    Raises DirectoryLocked, which names the holder, if a process has it locked.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _describe_holder(os.pread(file, 1_000, 0))
            raise DirectoryLocked(f"{path.parent} is in use by process {holder}") from error
        yield
    finally:
        os.close(file)


def read_holder(path: Path) -> LockHolder:
    """Return the process that has, or had, a lock file; it names itself there."""
    try:
        lines = _parse_lock_file(path.read_bytes())
    except OSError:
        return LockHolder(0, True)
    process_id = int(lines.process_id) if lines.process_id.isdecimal() else 0
    return LockHolder(process_id, _is_this_host(lines.host))


class ProcessFileLock:
    """Holds an exclusive lock on a file until it is released.

    `owner` says who holds it, for the error that others get, beside process id and command.
    """

    def __init__(self, path: Path, owner: str = "") -> None:
        """Lock the file at `path`, and create its directory if needed.

        Raises DirectoryLocked, which names the holder, if another process or another lock object of
        this one has it; StateError if the file system has no locks or the file can't be created.
        """
        self._path = path
        self._file = -1
        try:
            for _ in range(_ATTEMPTS):
                if self._try_lock():
                    break
            else:
                raise StateError(f"{path} can't be locked: it is removed again and again")
            os.ftruncate(self._file, 0)
            lines = (os.getpid(), _read_own_command_line(), owner, os.uname().nodename)
            os.pwrite(self._file, "".join(f"{each}\n" for each in lines).encode(), 0)
        except BlockingIOError as error:
            holder = _describe_holder(os.pread(self._file, 1_000, 0))
            self._close_file()
            raise DirectoryLocked(f"{path.parent} is in use by process {holder}") from error
        except OSError as error:
            self._close_file()
            raise StateError(f"{path} can't be locked: {error.strerror}") from error

    def release(self) -> None:
        """Release the lock and delete its directory if nothing else is in it; may be repeated."""
        if self._file < 0:
            return
        with suppress(OSError):
            os.utime(self._file)  # the cleanup reads when it was in use last
            # Only while the path names this file: it may have been renamed with its directory,
            # and another process may have created the path anew.
            if self._is_still_at_path() and os.listdir(self._path.parent) == [self._path.name]:
                self._path.unlink()
                self._path.parent.rmdir()
        self._close_file()

    def _try_lock(self) -> bool:
        """Lock the file at the path and return True, or False if it was replaced meanwhile."""
        try:
            with suppress(FileExistsError):  # mkdir(exist_ok=True) fails if it is deleted meanwhile
                self._path.parent.mkdir()
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._is_still_at_path():
                return True
        except FileNotFoundError:
            if not self._path.parent.parent.exists():
                raise
        self._close_file()
        return False

    def _is_still_at_path(self) -> bool:
        return os.path.samestat(os.fstat(self._file), os.stat(self._path))

    def _close_file(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def _read_own_command_line() -> str:
    """Return the command line of this process, as it was given to Python."""
    command = " ".join(sys.orig_argv).encode(errors="replace").decode(errors="replace")
    return " ".join(command.split())[:_COMMAND_CHARS]


def _describe_holder(lock_file_content: bytes) -> str:
    """Return a description of the process that holds a lock, from the content of its lock file."""
    process_id, command, owner, host = _parse_lock_file(lock_file_content)
    who = process_id or "unknown"
    if not _is_this_host(host):
        who += f" of host {host}"
    if command:
        who += f" ({command})"
    return f"{who}, {owner}" if owner else who


def _parse_lock_file(lock_file_content: bytes) -> _LockFileLines:
    """Split a lock file into its lines about the holder; a missing one is empty."""
    lines = [*lock_file_content.decode(errors="replace").split("\n"), *[""] * 4]
    return _LockFileLines(*lines[:4])


def _is_this_host(host: str) -> bool:
    """Return whether a holder is of this machine, and not of one that shares the disk with it."""
    return host in ("", os.uname().nodename)
