"""Run threads of a simulated process: real ones, of which exactly one runs at a time.

The loop of the world has the baton. It hands it to a thread whose time has come, and gets it back
when the thread waits or ends: so that what runs beside what is decided by virtual time and the seed
alone, and blocking code of the product runs as it is.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.runtime.process import Process


class Killed(BaseException):
    """Ends the process in the middle of this call; no product code may catch it."""


class SimThread:
    """Represents one thread, whose `resume` is called by the loop, and all else by threads."""

    def __init__(self, process: Process, name: str, run: Callable[[], None]) -> None:
        self.process = process
        self.name = name
        self.is_done = False
        self._run = run
        self._mine = _thread.allocate_lock()
        self._loops = _thread.allocate_lock()
        self._mine.acquire()
        self._loops.acquire()
        self._waits = 0  # counts the waits: a wake-up is for one of them
        self._was_woken = False
        self._failure: BaseException | None = None
        self._at_end: list[Callable[[], None]] = []
        _thread.start_new_thread(self._main, ())

    # Called by the loop

    def resume(self) -> None:
        """Let the thread run until it waits again.

        Raises what it could not handle.
        """
        if self.is_done:
            return
        world = self.process.world
        before, world.current = world.current, self
        self._mine.release()
        self._loops.acquire()
        world.current = before
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    # Called by threads

    def wait(
        self, register: Callable[[Callable[[], None]], object], timeout_s: float | None
    ) -> bool:
        """Wait until the callback given to `register` is called; return False if time is up."""
        self.process.check_alive()
        loop = self.process.world.loop
        self._waits += 1
        number = self._waits
        self._was_woken = False

        def wake(woken: bool) -> None:
            if self._waits == number:
                self._was_woken = woken
                self._waits += 1
                loop.call_soon(self.process.when_running, self.resume)

        timer = None if timeout_s is None else loop.after_ms(timeout_s * 1_000, wake, False)
        register(lambda: wake(True))
        self._give_back()
        if timer is not None:
            timer.cancel()
        return self._was_woken

    def join(self, timeout: float | None = None) -> None:
        thread = self.process.world.running()
        if not self.is_done:
            thread.wait(self._at_end.append, timeout)

    def is_alive(self) -> bool:
        return not self.is_done

    def _give_back(self) -> None:
        self._loops.release()
        self._mine.acquire()
        if self.process.is_dead:
            raise Killed

    def _main(self) -> None:
        self._mine.acquire()
        try:
            if not self.process.is_dead:
                self._run()
        except Killed:
            pass
        except BaseException as error:
            self._failure = error
        self.is_done = True
        for each in self._at_end:
            each()
        self._loops.release()
