"""Represent the machine that the runtime runs on: time, waiting, and threads.

It is passed in as an argument, so that a simulation runs workers, heartbeats and restores on a
clock of its own, one at a time, in an order that a seed decides.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import copy_context
from pathlib import Path
from typing import Protocol


class Event(Protocol):
    """Holds a flag that others can wait for: the part of `threading.Event` that is used."""

    def is_set(self) -> bool: ...

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds until the flag is set, and return whether it is set."""
        ...


class SpawnedThread(Protocol):
    """Represents a running thread: what the runtime uses of `threading.Thread`."""

    def join(self, timeout: float | None = None) -> None: ...

    def is_alive(self) -> bool: ...


class Clocks(Protocol):
    """Provides the machine's two clocks: the wall clock may be set while the other one goes on."""

    def monotonic_s(self) -> float: ...

    def now_ms(self) -> int:
        """Return the wall-clock time, in ms since 1970."""
        ...


class Host(Clocks, Protocol):
    """Provides what the runtime needs of the machine: clocks, events, locks and threads."""

    def create_event(self) -> Event: ...

    def create_lock(self) -> AbstractContextManager[object]: ...

    def spawn_thread(self, name: str, target: Callable[[], None]) -> SpawnedThread:
        """Start `target` on a thread of its own; it must end by itself once it is told to."""
        ...


class SystemHost:
    """Provides the threads, locks and clocks of the operating system."""

    def monotonic_s(self) -> float:
        return time.monotonic()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def create_event(self) -> Event:
        return threading.Event()

    def create_lock(self) -> AbstractContextManager[object]:
        return threading.Lock()

    def spawn_thread(self, name: str, target: Callable[[], None]) -> SpawnedThread:
        # What is known of the program goes along, for its messages (`streams.command_lines`).
        thread = threading.Thread(target=copy_context().run, args=(target,), name=name, daemon=True)
        thread.start()
        return thread


class ShiftedHost(SystemHost):
    """Shifts the wall clock by the ms in a file that may be replaced, so that tests let days pass.

    The file is read again once it has changed; one that is missing means no shift. The broker of a
    test has the same file (`python -m coordinator --clock-shift`). The monotonic clock, by which
    sessions and time-outs go, is not shifted.
    """

    def __init__(self, shift_file: Path) -> None:
        self._path = shift_file
        self._version: tuple[int, int] | None = None
        self._shift_ms = 0

    def now_ms(self) -> int:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._version, self._shift_ms = None, 0
        else:
            version = (status.st_ino, status.st_mtime_ns)
            if version != self._version:
                # A text that is being written has no number yet: it is read with the next call.
                text = self._path.read_text().strip()
                if text.removeprefix("-").isdecimal():
                    self._version, self._shift_ms = version, int(text)
        return super().now_ms() + self._shift_ms
