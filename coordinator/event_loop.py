"""Run timers and long calls on asyncio's loop, as the scheduler and the background of a broker.

Tests and simulations give a broker others: see `clock` for the interfaces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

from coordinator.clock import Timer


class LoopScheduler:
    """Schedules calls on the asyncio loop that is running."""

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        loop = asyncio.get_running_loop()
        if delay_ms <= 0:
            # A timer of the loop would come after what it reads from sockets next.
            return loop.call_soon(callback)
        return loop.call_later(delay_ms / 1_000, callback)


class BackgroundThread:
    """Runs long system calls on one thread beside the event loop, started when it is first used."""

    def __init__(self) -> None:
        self._executor: Executor | None = None

    def run_in_background(
        self, work: Callable[[], None], on_done: Callable[[Exception | None], None]
    ) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no loop runs yet, so the call holds nobody up
            on_done(_call_and_catch(work))
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "background")
        future = loop.run_in_executor(self._executor, _call_and_catch, work)
        future.add_done_callback(
            lambda future: None if future.cancelled() else on_done(future.result())
        )

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None


def _call_and_catch(work: Callable[[], None]) -> Exception | None:
    """Call `work` and return the exception that it raised, or None."""
    try:
        work()
    except Exception as error:
        return error
    return None
