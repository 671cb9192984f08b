"""Represent bytes of a log that are read when they are sent, not when they are found.

A Fetch may answer with 50 MB, and a client may take its time to read them. The answer only refers
to a place in a file; `wire/send_buffer` reads a piece when the last one has gone out. Batches never
change once they are in a log, so it doesn't matter when that is. This keeps its file open when
its segment or its topic is removed, for at most `file.delete.delay.ms` (see `removal`); after that
reading is an OSError, the connection is closed, and the client asks again.
"""

from __future__ import annotations

from coordinator.log.disk import File


class FileRecords:
    """Refers to `len()` bytes of a file, which are read on demand."""

    __slots__ = ("_file", "_size", "_start")

    def __init__(self, file: File, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self, at: int, count: int) -> bytes:
        """Read `count` bytes from `at` on, counted from the range's start.

        Raises: OSError, also if there are fewer.
        """
        found = self._file.read(count, self._start + at)
        if len(found) != count:
            raise OSError(f"{len(found)} of {count} bytes at {self._start + at}")
        return found

    def __bytes__(self) -> bytes:
        return self.read(0, self._size)
