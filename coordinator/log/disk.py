"""Define the disk that the broker is given: every call that it makes of files and directories.

Kafka's promise on a single machine is the page cache's: a write that has returned survives `kill
-9` of the broker. So an append is one plain write. To survive a loss of power, a file's bytes have
to be flushed with `File.flush`, and names that were made, changed or removed in a directory with
`flush_directory`; `replace_file` does both. A test or a simulation passes a disk of its own that
fails, tears or loses writes where it likes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import NamedTuple, Protocol

from coordinator.linux_calls import yield_processor


class DiskSpace(NamedTuple):
    """Holds the size of a file system in bytes, and how much of it is free."""

    total_bytes: int
    free_bytes: int


class File(Protocol):
    """Reads and writes an open file that grows at its end; every call may raise OSError.

    A file that nothing refers to any more is closed; it can be referred to weakly.
    """

    def write(self, data: bytes | bytearray, position: int) -> None:
        """Write all of `data` at this position."""
        ...

    def read(self, count: int, position: int) -> bytes:
        """Read up to `count` bytes from this position; fewer only at the end."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def flush(self) -> None:
        """Force the file's bytes and size to the disk, to survive a loss of power.

        It is also called from another thread.
        """
        ...

    def close(self) -> None: ...


class DiskLock(Protocol):
    """Represents a lock that is held until it is released."""

    def release(self) -> None: ...


class BrokerDisk(Protocol):
    """Reads and changes files and directories by path; every call may raise OSError."""

    def open_file(self, path: Path) -> File:
        """Open a file, creating it if it isn't there."""
        ...

    def file_size(self, path: Path) -> int | None:
        """Return the size of a file in bytes; None if it isn't there."""
        ...

    def read_file(self, path: Path) -> bytes | None:
        """Read all of a small file; None if it isn't there."""
        ...

    def replace_file(self, path: Path, content: bytes) -> None:
        """Replace a small file atomically and flush it.

        After a crash of any kind it has the old or the new content, and once this has returned the
        new one.
        """
        ...

    def measure_space(self, directory: Path) -> DiskSpace:
        """Return the total and the free bytes of the directory's file system."""
        ...

    def list_names(self, directory: Path) -> list[str]:
        """List the names in a directory; none if it isn't there."""
        ...

    def make_directory(self, path: Path) -> None:
        """Create a directory, and those above it, if it isn't there."""
        ...

    def flush_directory(self, path: Path) -> None:
        """Force the names in a directory to the disk, to survive a loss of power."""
        ...

    def rename_path(self, old: Path, new: Path) -> None:
        """Rename a file or a directory; a file in the place of `new` is replaced."""
        ...

    def remove_file(self, path: Path) -> None:
        """Remove a file, if it is there."""
        ...

    def remove_tree(self, path: Path) -> None:
        """Remove a directory and everything in it, as far as it is there."""
        ...

    def lock_file(self, path: Path) -> DiskLock:
        """Lock a file until the lock is released or the process ends.

        Raises: BlockingIOError while another holds it.
        """
        ...


_LOCK_ATTEMPTS = 100_000


class SystemFile:
    """Reads and writes a file of the operating system at positions.

    It is closed at the latest when nothing refers to it any more.
    """

    _fd = -1  # of a file that could not be opened

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, data: bytes | bytearray, position: int) -> None:
        written = os.pwrite(self._fd, data, position)
        while written < len(data):  # a full disk takes a part first, and only fails the next write
            written += os.pwrite(self._fd, memoryview(data)[written:], position + written)

    def read(self, count: int, position: int) -> bytes:
        return os.pread(self._fd, count, position)

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
    """Holds a lock on a file; the kernel releases it when the process ends.

    A process that looks whether anybody holds it has a shared lock for some microseconds, and is no
    holder.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            self._lock_exclusively_or_raise()
        except OSError:
            os.close(self._fd)
            raise

    def _lock_exclusively_or_raise(self) -> None:
        """Lock the file. Raises BlockingIOError if another process holds it exclusively."""
        for _ in range(_LOCK_ATTEMPTS):
            with suppress(BlockingIOError):
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # raises where there is a holder
            yield_processor()
        raise BlockingIOError(f"{_LOCK_ATTEMPTS} attempts")

    def release(self) -> None:
        os.close(self._fd)


class SystemDisk:
    """Accesses the file system of the machine.

    `like_stat`: files that are replaced or locked get its owner and mode, and not those of this
    process.
    """

    _like: os.stat_result | None = None  # subclasses in tests don't call __init__

    def __init__(self, like_stat: os.stat_result | None = None) -> None:
        self._like = like_stat

    def open_file(self, path: Path) -> File:
        return SystemFile(path)

    def file_size(self, path: Path) -> int | None:
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def read_file(self, path: Path) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def replace_file(self, path: Path, content: bytes) -> None:
        new = path.with_name(f"{path.name}.tmp")
        with open(new, "wb") as file:
            self._set_given_owner_and_mode(new)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        self.flush_directory(path.parent)

    def measure_space(self, directory: Path) -> DiskSpace:
        found = os.statvfs(directory)
        return DiskSpace(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def list_names(self, directory: Path) -> list[str]:
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

    def rename_path(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def remove_file(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            os.remove(path)

    def remove_tree(self, path: Path) -> None:
        shutil.rmtree(path, ignore_errors=True)

    def lock_file(self, path: Path) -> DiskLock:
        if self._like is not None and self.file_size(path) is None:
            path.touch()
            self._set_given_owner_and_mode(path)
        return SystemLock(path)

    def _set_given_owner_and_mode(self, path: Path) -> None:
        """Give a file the owner and mode of another one, if the disk was made with its stat."""
        like = self._like
        if like is None:
            return
        now = os.stat(path)
        if (now.st_uid, now.st_gid) != (like.st_uid, like.st_gid):
            os.chown(path, like.st_uid, like.st_gid)
        os.chmod(path, S_IMODE(like.st_mode))
