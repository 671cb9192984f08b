"""How much of requests the broker holds for all clients together, and who may send more.

A request may have 100 MB, and it is in memory until it is answered. While all that is held is
within the limit, everybody is read from. Beyond it only one client is, the one that began first,
so that its request is completed, answered and gone; the others go on after it. So the limit is
passed by one request at the most, and requests that are half there can't wait for each other.
Little pieces aren't counted: what one read brings costs less than to account for it.
Source of the idea: queued.max.request.bytes, KIP-72.
"""

from __future__ import annotations

from typing import Protocol

COUNTED_FROM_BYTES = 262_144


class Reader(Protocol):
    """A connection, as far as it is read from."""

    def resume(self) -> None:
        """It may be read from again: it was told that it may not."""
        ...


class Intake:
    """Bytes held, by connection, in the order in which they began to hold some."""

    def __init__(self, bytes_max: int) -> None:
        """-1: no limit."""
        self._bytes_max = bytes_max
        self._held: dict[Reader, int] = {}
        self._waiting: dict[Reader, None] = {}
        self.held_bytes = 0

    def hold(self, reader: Reader, held_bytes: int) -> bool:
        """It holds so much now; whether it may be read from. If not, it is told when it may."""
        before = self._held.get(reader, 0)
        if held_bytes < COUNTED_FROM_BYTES:
            if before:
                self.leave(reader)
            return True
        self._held[reader] = held_bytes
        self.held_bytes += held_bytes - before
        if held_bytes < before:
            self._wake()
        if self._may_read(reader):
            self._waiting.pop(reader, None)
            return True
        self._waiting[reader] = None
        return False

    def leave(self, reader: Reader) -> None:
        """It holds nothing any more."""
        self._waiting.pop(reader, None)
        self.held_bytes -= self._held.pop(reader, 0)
        self._wake()

    def _wake(self) -> None:
        for reader in [reader for reader in self._waiting if self._may_read(reader)]:
            self._waiting.pop(reader, None)
            reader.resume()

    def _may_read(self, reader: Reader) -> bool:
        return (
            self._bytes_max < 0
            or self.held_bytes <= self._bytes_max
            or next(iter(self._held)) is reader
        )
