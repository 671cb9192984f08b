"""The disk as an argument: the few calls that a log makes of a file.

Kafka's promise on a single machine is the page cache's: a write that has returned survives
`kill -9` of the broker. So an append is one plain write, and `flush` is for a clean stop.
A test or a simulation passes a disk of its own that fails or tears writes where it likes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol


class File(Protocol):
    """A file that grows at its end. Every call may raise OSError."""

    def write(self, data: bytes | bytearray, at: int) -> None:
        """All of `data`, at this position."""
        ...

    def read(self, count: int, at: int) -> bytes:
        """Up to `count` bytes from this position; fewer only at the end."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class Disk(Protocol):
    """Opens files, making those that aren't there."""

    def open(self, path: Path) -> File: ...


class SystemFile:
    """A file of the operating system, read and written at positions."""

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
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class SystemDisk:
    """The machine's own."""

    def open(self, path: Path) -> File:
        return SystemFile(path)
