"""Keep bytes in a file of memory that has no name, for libraries that read files only."""

from __future__ import annotations

import os
import tempfile


class NamelessFile(str):
    """Is the path by which this process can open bytes; they are gone with this text.

    So whoever holds the path, such as the settings of a client, holds the file.
    """

    __slots__ = ("_descriptor",)
    _descriptor: int

    def __new__(cls, data: bytes) -> NamelessFile:
        descriptor = _open_nameless()
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(data)
        except OSError:
            os.close(descriptor)
            raise
        path = super().__new__(cls, f"/dev/fd/{descriptor}")
        path._descriptor = descriptor
        return path

    def __del__(self) -> None:
        os.close(self._descriptor)


def _open_nameless() -> int:
    """Open a file that no directory lists, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("millrace-connection")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
