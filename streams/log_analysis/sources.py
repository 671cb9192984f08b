"""Read logs as blocks of whole lines: plain, compressed, from standard input, or as they grow."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import cramjam

from streams.errors import ConfigError

BLOCK_BYTES = 1 << 20
LINE_BYTES_MAX = 4 << 20
"""A longer line is taken as several."""
_FOLLOW_S = 0.5
_OPEN_S = 30.0
_GZIP, _ZSTD, _LZ4 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"
STANDARD_INPUT = "-"


class _Reader(Protocol):
    def read(self, size: int, /) -> bytes: ...


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
        self._follows = follows
        self._on_bytes = on_bytes

    def read_blocks(self) -> Iterator[bytes]:
        """Yield blocks that end with a line's end, except for the last.

        Raises: ConfigError for a file that can't be read. With `follows` it ends by Ctrl-C only.
        """
        rest = b""
        try:
            with self._open_log() as reader:
                while True:
                    data = reader.read(BLOCK_BYTES)
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
    def _open_log(self) -> Iterator[_Reader]:
        """Open the log, and decompress it if its first bytes say that it is compressed."""
        if self._path == STANDARD_INPUT:
            yield sys.stdin.buffer
            return
        with Path(self._path).open("rb") as file:
            magic = file.peek(4)[:4]
            if magic.startswith(_GZIP):
                yield _Counted(gzip.GzipFile(fileobj=file), file, self._on_bytes)
            elif magic in (_ZSTD, _LZ4):
                codec = cramjam.zstd if magic == _ZSTD else cramjam.lz4
                with _decompress_file(self._path, codec.decompress_into) as reader:
                    yield reader
            else:
                yield _Counted(file, file, self._on_bytes)


class _Counted:
    """Reads, and tells how far the file has been read."""

    def __init__(self, reader: _Reader, file: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        self._reader, self._file, self._on_bytes = reader, file, on_bytes

    def read(self, size: int) -> bytes:
        data = self._reader.read(size)
        self._on_bytes(self._file.tell())
        return data


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
