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

    `file` gets a line each of: the address; the process id; device and inode of `data`. The file
    descriptor `start_lock` is closed. Raises UnusableDataDirectory if the file can't be written.
    """
    address = format_address(host, port)
    if file is not None:
        try:
            _write_address(file, address, data)
        except OSError as error:
            raise UnusableDataDirectory(f"{file} can't be written: {error.strerror}") from error
    if start_lock is not None:
        os.close(start_lock)
    try:
        print(f"listening on {address}", flush=True)  # noqa: T201  whoever started it waits for it
    except BrokenPipeError:
        # As Python's documentation advises: else the same error comes again at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_address(file: Path, address: str, data: Path) -> None:
    """Write the file whole or not at all, also if the power is cut."""
    found = data.stat()
    new_file = file.with_suffix(".new")
    with new_file.open("w") as writer:
        writer.write(f"{address}\n{os.getpid()}\n{found.st_dev}:{found.st_ino}\n")
        writer.flush()
        os.fsync(writer.fileno())
    new_file.replace(file)
