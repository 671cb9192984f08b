"""Limit the memory that the requests of all clients take together.

A request may have 100 MB, and it is in memory until it is answered. While all requests are within
the limit, every client is read from. Above it only one client is, the one that began first, so that
its request is completed, answered and freed; the others continue after it. So the limit is exceeded
by one request at most, and incomplete requests can't wait for each other. If the client that is
read from sends nothing more, `StalledRequestWatch` closes its connection, so that a machine that
has gone does not keep all others waiting until its connection is idle for too long. Small pieces
aren't counted: accounting for what a single read brings would cost more than it saves.
Source of the idea: queued.max.request.bytes, KIP-72.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from coordinator.clock import Clock, Scheduler, Timer

MayReadMore: TypeAlias = bool

COUNTED_BYTES_MIN = 262_144
STALLED_MS = 10_000  # how long a client for which others wait may send nothing
_CHECK_INTERVAL_MS = 1_000


class RequestReader(Protocol):
    """Represents a connection whose reading can be paused and resumed."""

    def resume_reading(self) -> None:
        """Resume reading from the client, which was paused before."""
        ...

    def close_if_stalled(self, silent_since_ms: int) -> None:
        """Close the connection if its client has sent nothing since then."""
        ...


class RequestMemory:
    """Counts the bytes that each connection's requests hold, the oldest holder first.

    Kafka's counterpart is MemoryPool.
    """

    def __init__(self, bytes_max: int) -> None:
        """Create an empty count; `bytes_max` -1 means no limit."""
        self._bytes_max = bytes_max
        self._bytes_by_reader: dict[RequestReader, int] = {}
        self._waiting: dict[RequestReader, None] = {}
        self.held_bytes = 0
        self.on_wait: Callable[[], None] = lambda: None  # is called when a connection has to wait

    def set_held_bytes(self, reader: RequestReader, held_bytes: int) -> MayReadMore:
        """Set the bytes that a connection holds; return whether more may be read from it now.

        If not, its `resume_reading` is called when it may.
        """
        before = self._bytes_by_reader.get(reader, 0)
        if held_bytes < COUNTED_BYTES_MIN:
            if before:
                self.release_reader(reader)
            return True
        self._bytes_by_reader[reader] = held_bytes
        self.held_bytes += held_bytes - before
        if held_bytes < before:
            self._resume_waiting_readers()
        if self._may_read(reader):
            self._waiting.pop(reader, None)
            return True
        self._waiting[reader] = None
        self.on_wait()
        return False

    def find_blocking_reader(self) -> RequestReader | None:
        """Return the connection for whose request others wait; None if nobody waits."""
        return next(iter(self._bytes_by_reader)) if self._waiting else None

    def release_reader(self, reader: RequestReader) -> None:
        """Forget a connection's bytes, and resume connections that may be read from again."""
        self._waiting.pop(reader, None)
        self.held_bytes -= self._bytes_by_reader.pop(reader, 0)
        self._resume_waiting_readers()

    def _resume_waiting_readers(self) -> None:
        for reader in [reader for reader in self._waiting if self._may_read(reader)]:
            self._waiting.pop(reader, None)
            reader.resume_reading()

    def _may_read(self, reader: RequestReader) -> bool:
        return (
            self._bytes_max < 0
            or self.held_bytes <= self._bytes_max
            or next(iter(self._bytes_by_reader)) is reader
        )


class StalledRequestWatch:
    """Closes the connection for whose request others wait, once its client sends nothing more.

    It looks only while somebody waits.
    """

    def __init__(self, memory: RequestMemory, clock: Clock, scheduler: Scheduler) -> None:
        self._memory = memory
        self._clock = clock
        self._scheduler = scheduler
        self._timer: Timer | None = None
        memory.on_wait = self._schedule_check

    def stop_watching(self) -> None:
        """Cancel the next check."""
        if self._timer is not None:
            self._timer.cancel()

    def _schedule_check(self) -> None:
        if self._timer is None:
            self._timer = self._scheduler.call_later(_CHECK_INTERVAL_MS, self._check_reader)

    def _check_reader(self) -> None:
        self._timer = None
        reader = self._memory.find_blocking_reader()
        if reader is not None:
            reader.close_if_stalled(self._clock.monotonic_ms() - STALLED_MS)
            self._schedule_check()
