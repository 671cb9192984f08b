"""Announce where a broker listens: in a file, by giving up a lock, and on standard output.

Whoever starts the broker may be killed meanwhile. So the broker writes the file itself, and the
lock that it has inherited keeps others from starting one until it listens. Nobody has to read the
line on standard output.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from coordinator.log.data_directory import UnusableDataDirectory
from coordinator.wire.server import format_address


def announce_broker(
    host: str, port: int, data: Path, *, file: Path | None, start_lock: int | None
) -> None:
    """Announce that a broker with its topics in `data` listens at `host` and `port`.

    `file` gets two lines, the address and the process id, on which scripts rely; device and inode
    of `data` stand beside it, in a file that ends in `.data`. The file descriptor `start_lock` is
    closed. Raises UnusableDataDirectory if a file can't be written.
    """
    address = format_address(host, port)
    if file is not None:
        try:
            found = data.stat()
            _write_atomically(file.with_suffix(".data"), f"{found.st_dev}:{found.st_ino}\n")
            _write_atomically(file, f"{address}\n{os.getpid()}\n")
        except OSError as error:
            raise UnusableDataDirectory(f"{file} can't be written: {error.strerror}") from error
    if start_lock is not None:
        os.close(start_lock)
    try:
        print(f"listening on {address}", flush=True)  # noqa: T201  whoever started it waits for it
    except BrokenPipeError:
        # As Python's documentation advises: else the same error comes again at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_atomically(file: Path, text: str) -> None:
    """Write a file whole or not at all, also if the power is cut."""
    new_file = file.with_suffix(".new")
    with new_file.open("w") as writer:
        writer.write(text)
        writer.flush()
        os.fsync(writer.fileno())
    new_file.replace(file)
