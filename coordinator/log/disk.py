"""The disk as an argument: every call that the broker makes of files and directories.

Kafka's promise on a single machine is the page cache's: a write that has returned survives
`kill -9` of the broker. So an append is one plain write. What is to survive a loss of power has to
be flushed: a file's bytes with `File.flush`, names that were made, changed or removed in a
directory with `flush_directory`; `replace` does both.
A test or a simulation passes a disk of its own that fails, tears or loses writes where it likes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Protocol


class File(Protocol):
    """A file that grows at its end. Every call may raise OSError. One that nothing refers to any
    more is closed; it can be referred to weakly."""

    def write(self, data: bytes | bytearray, at: int) -> None:
        """All of `data`, at this position."""
        ...

    def read(self, count: int, at: int) -> bytes:
        """Up to `count` bytes from this position; fewer only at the end."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def flush(self) -> None:
        """The bytes and the size survive a loss of power. Also called from another thread."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    """A lock that is held."""

    def release(self) -> None: ...


class Disk(Protocol):
    """Files and directories by path. Every call may raise OSError."""

    def open(self, path: Path) -> File:
        """The file, made if it isn't there."""
        ...

    def size(self, path: Path) -> int | None:
        """Bytes in a file; None if it isn't there."""
        ...

    def read(self, path: Path) -> bytes | None:
        """All of a small file; None if it isn't there."""
        ...

    def replace(self, path: Path, content: bytes) -> None:
        """Put a whole small file in place: after a crash of any kind it is the old or the new one,
        and once this has returned the new one."""
        ...

    def room(self, directory: Path) -> tuple[int, int]:
        """The bytes of the file system that the directory is on: all, and those still free."""
        ...

    def names(self, directory: Path) -> list[str]:
        """What is in a directory; nothing if it isn't there."""
        ...

    def make_directory(self, path: Path) -> None:
        """With those above it, if it isn't there."""
        ...

    def flush_directory(self, path: Path) -> None:
        """The names in it survive a loss of power."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """A file or a directory; a file in the place of `new` is gone then."""
        ...

    def remove(self, path: Path) -> None:
        """A file, if it is there."""
        ...

    def remove_tree(self, path: Path) -> None:
        """A directory and what is in it, as far as it is there."""
        ...

    def lock(self, path: Path) -> Lock:
        """Held until released or the process ends. BlockingIOError while another holds it."""
        ...


class SystemFile:
    """A file of the operating system, read and written at positions. Closed at the latest when
    nothing refers to it any more."""

    _fd = -1  # of one that could not be opened

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, data: bytes | bytearray, at: int) -> None:
        written = os.pwrite(self._fd, data, at)
        while written < len(data):  # a full disk takes a part first, and fails then
            written += os.pwrite(self._fd, memoryview(data)[written:], at + written)

    def read(self, count: int, at: int) -> bytes:
        return os.pread(self._fd, count, at)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def flush(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close


class SystemLock:
    """A lock on a file; the kernel lets go of it when the process ends."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise

    def release(self) -> None:
        os.close(self._fd)


class SystemDisk:
    """The machine's own. `like`: files that are replaced or locked get its owner and mode, and not
    those of this process."""

    _like: os.stat_result | None = None  # of a disk of a test, too

    def __init__(self, like: os.stat_result | None = None) -> None:
        self._like = like

    def open(self, path: Path) -> File:
        return SystemFile(path)

    def size(self, path: Path) -> int | None:
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def read(self, path: Path) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def replace(self, path: Path, content: bytes) -> None:
        new = path.with_name(f"{path.name}.tmp")
        with open(new, "wb") as file:
            self._give(new)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        self.flush_directory(path.parent)

    def room(self, directory: Path) -> tuple[int, int]:
        found = os.statvfs(directory)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def names(self, directory: Path) -> list[str]:
        try:
            return os.listdir(directory)
        except FileNotFoundError:
            return []

    def make_directory(self, path: Path) -> None:
        os.makedirs(path, exist_ok=True)

    def flush_directory(self, path: Path) -> None:
        directory = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            os.remove(path)

    def remove_tree(self, path: Path) -> None:
        shutil.rmtree(path, ignore_errors=True)

    def lock(self, path: Path) -> Lock:
        if self._like is not None and self.size(path) is None:
            path.touch()
            self._give(path)
        return SystemLock(path)

    def _give(self, new: Path) -> None:
        like = self._like
        if like is None:
            return
        now = os.stat(new)
        if (now.st_uid, now.st_gid) != (like.st_uid, like.st_gid):
            os.chown(new, like.st_uid, like.st_gid)
        os.chmod(new, S_IMODE(like.st_mode))
