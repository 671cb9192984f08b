"""Read logs as blocks of whole lines: plain, compressed, from standard input, or as they grow."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self

import cramjam

from streams.errors import ConfigError

BLOCK_BYTES = 1 << 20
LINE_BYTES_MAX = 4 << 20
"""A longer line is taken as several."""
_FOLLOW_S = 0.5
_OPEN_S = 30.0
_GZIP, _ZSTD, _LZ4 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"
STANDARD_INPUT = "-"


_Read = Callable[[int], bytes]
"""Returns at most so many bytes, and none at the end, which of a followed log is the end so far."""


class LogSource:
    """Reads one log; `on_bytes` is called with the number of bytes of the file that were read."""

    def __init__(
        self,
        path: str,
        *,
        follows: bool = False,
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.name = "standard input" if path == STANDARD_INPUT else path
        self._path = path
        self._follows = follows and path != STANDARD_INPUT  # whose end is that of the log
        self._on_bytes = on_bytes

    def read_blocks(self) -> Iterator[bytes]:
        """Yield blocks that end with a line's end, except for the last.

        Raises: ConfigError for a file that can't be read. With `follows` it ends by Ctrl-C only.
        """
        rest = b""
        try:
            with self._open_log() as read:
                while True:
                    data = read(BLOCK_BYTES)
                    if not data:
                        if not self._follows:
                            break
                        time.sleep(_FOLLOW_S)
                        continue
                    head, end, tail = data.rpartition(b"\n")
                    if not end and len(rest) + len(tail) < LINE_BYTES_MAX:
                        rest += tail
                        continue
                    yield rest + head + end if end else rest + tail
                    rest = tail if end else b""
        except (OSError, EOFError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigError(f"log {self.name!r} can't be read: {reason}") from error
        if rest:
            yield rest

    @contextmanager
    def _open_log(self) -> Iterator[_Read]:
        """Open the log, and decompress it if its first bytes say that it is compressed."""
        if self._path == STANDARD_INPUT:
            yield _open_standard_input()
            return
        with Path(self._path).open("rb") as file:
            magic = file.peek(4)[:4]
            if magic.startswith(_GZIP):
                yield self._create_counting_read(gzip.GzipFile(fileobj=file).read, file)
            elif magic in (_ZSTD, _LZ4):
                codec = cramjam.zstd if magic == _ZSTD else cramjam.lz4
                with _decompress_file(self._path, codec.decompress_into) as reader:
                    yield reader.read
            elif self._follows:
                with _FollowedFile(self._path) as followed:
                    yield followed.read_new_bytes
            else:
                yield self._create_counting_read(file.read, file)

    def _create_counting_read(self, read: _Read, file: BinaryIO) -> _Read:
        """Return a function that reads, and tells how far the file has been read."""

        def read_and_count(size: int) -> bytes:
            data = read(size)
            self._on_bytes(file.tell())
            return data

        return read_and_count


def _open_standard_input() -> _Read:
    """Return a function that reads what has arrived of standard input, decompressed if of gzip.

    Raises: ConfigError for other compressed data.
    """
    piped: Any = sys.stdin.buffer
    # Another reader around a buffered one would wait until its own buffer is full.
    stream: io.BufferedReader[Any] = (
        piped if isinstance(piped, io.BufferedReader) else io.BufferedReader(piped)
    )
    magic = stream.peek(4)[:4]
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=stream).read
    if magic in (_ZSTD, _LZ4):
        name = "zstd" if magic == _ZSTD else "lz4"
        raise ConfigError(
            f"standard input is compressed: decompress it before, as in `{name} -dc FILE | "
            "millrace logs analyze -`"
        )
    return stream.read1


class _FollowedFile:
    """Reads a log that grows, and goes on with the new file once it is rotated or cut."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = Path(path).open("rb")  # noqa: SIM115 - is replaced while it is followed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read_new_bytes(self, size: int) -> bytes:
        """Return what has arrived; at the end of a file that was replaced, begin the new one."""
        data = self._file.read(size)
        if not data and self._is_replaced():
            data = self._file.read(size)  # what was written until it was replaced
            if not data:
                self._file.close()
                self._file = Path(self._path).open("rb")  # noqa: SIM115
        return data

    def _is_replaced(self) -> bool:
        """Return whether another file is at the path now, or this one has been cut."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:  # for a moment, as it is rotated
            return False
        opened = os.fstat(self._file.fileno())
        is_other = (found.st_dev, found.st_ino) != (opened.st_dev, opened.st_ino)
        return is_other or found.st_size < self._file.tell()


@contextmanager
def _decompress_file(path: str, decompress_into: Callable[..., int]) -> Iterator[BinaryIO]:
    """Decompress a file through a pipe, as cramjam decompresses whole files only.

    Raises: OSError for a file that is damaged, or that cramjam can't open, which needs to write it.
    """
    if not os.access(path, os.W_OK):
        raise ConfigError(
            f"log {path!r} is compressed, and may not be written, which its library asks for: "
            f"decompress it first, as in `zstdcat {path} | millrace logs analyze -`"
        )
    failures: list[str] = []

    is_open = threading.Event()

    def run(pipe: Path) -> None:
        try:
            target = cramjam.File(str(pipe), read=False, write=True, truncate=False, append=True)
            is_open.set()
            source = cramjam.File(path, read=True, write=True, truncate=False, append=False)
            decompress_into(source, target)
        except Exception as error:  # whose traceback would keep the target, and so the pipe, open
            failures.append(str(error))

    with tempfile.TemporaryDirectory(prefix="millrace-") as directory:
        pipe = Path(directory, "decompressed")
        os.mkfifo(pipe)
        # First this end, without a wait: the other one is opened with the interpreter's lock held.
        descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as reader:
            thread = threading.Thread(target=run, args=(pipe,), name="decompress", daemon=True)
            thread.start()
            is_open.wait(_OPEN_S)
            os.set_blocking(descriptor, True)
            yield reader
            if not reader.read(1):
                thread.join()
    if failures:
        raise OSError(failures[0])
