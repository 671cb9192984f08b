"""Simulate a worker's machine with the world's clock, and threads that take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType

from tests.simulation.runtime.process import Process
from tests.simulation.runtime.threads import SimThread


class SimHost:
    """Stands in for a `streams.common.host.Host`."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def monotonic_s(self) -> float:
        self._process.yield_turn()
        return self._process.world.loop.elapsed_ms / 1_000

    def now_ms(self) -> int:
        self._process.yield_turn()
        return self._process.world.loop.now_ms()

    def create_event(self) -> SimEvent:
        return SimEvent(self._process)

    def create_lock(self) -> SimLock:
        return SimLock(self._process)

    def spawn_thread(self, name: str, target: Callable[[], None]) -> SimThread:
        self._process.check_alive()
        return self._process.spawn(name, target)


class SimEvent:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._is_set = False
        self._waiting: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        self._process.yield_turn()
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        self._process.yield_turn()
        if not self._is_set:
            self._process.world.running().wait(self._waiting.append, timeout)
        return self._is_set


class SimLock:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._is_held = False
        self._waiting: deque[Callable[[], None]] = deque()

    def acquire(self) -> bool:
        self._process.yield_turn()
        while self._is_held:
            self._process.world.running().wait(self._waiting.append, None)
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False
        if self._waiting:
            self._waiting.popleft()()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
