"""Run asyncio in virtual time: a loop whose clock jumps to whatever is due next.

The broker answers long polls and joins with asyncio futures, and clients are coroutines; both run
on this loop, so that virtual time is all there is and every run of a seed is the same run. What is
due at one moment is called in the order in which it was scheduled.

A real loop with time-outs of zero would not do: long polls would never wait, and those that woke
them would never be simulated.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, cast


class RequestFailure(Exception):
    """Reports that a request of a simulated client has failed, for whoever waits for it still."""


class Unanswered(RequestFailure):
    """Reports that the outcome of a request is unknown."""


START_MS = 1_700_000_000_000


class Call:
    """Represents one scheduled call."""

    __slots__ = ("arguments", "callback", "context", "when_ms")

    def __init__(
        self,
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        context: Context | None,
        when_ms: float = 0,
    ) -> None:
        self.callback: Callable[..., object] | None = callback
        self.arguments = arguments
        self.context = context
        self.when_ms = when_ms

    def cancel(self) -> None:
        self.callback = None
        self.arguments = ()

    def cancelled(self) -> bool:
        return self.callback is None

    def make(self) -> None:
        if self.callback is None:
            return
        if self.context is None:
            self.callback(*self.arguments)
        else:
            self.context.run(self.callback, *self.arguments)


class VirtualLoop:
    """Stands in for an event loop, as far as futures and tasks need one.

    `failures` are the exceptions that nobody else has handled.
    """

    def __init__(self) -> None:
        self.elapsed_ms = 0.0
        self.passed_ms = 0
        """How far days that passed have moved the wall clock, and not the monotonic one."""
        self.failures: list[str] = []
        self._ready: deque[Call] = deque()
        self._timers: list[tuple[float, int, Call]] = []
        self._sequence = 0

    # The clock

    def now_ms(self) -> int:
        return START_MS + self.passed_ms + int(self.elapsed_ms)

    def monotonic_ms(self) -> int:
        return int(self.elapsed_ms)

    def monotonic_ns(self) -> int:
        return int(self.elapsed_ms * 1_000_000)

    # Called by asyncio

    def time(self) -> float:
        return self.elapsed_ms / 1_000

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Call:
        call = Call(callback, args, context)
        self._ready.append(call)
        return call

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Call:
        return self._file(self.elapsed_ms + max(0.0, delay * 1_000), callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Call:
        return self._file(when * 1_000, callback, args, context)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=cast(asyncio.AbstractEventLoop, self))

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=cast(asyncio.AbstractEventLoop, self), name=name)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if isinstance(context.get("exception"), RequestFailure):
            return  # of a client that had given up by then, such as a worker that was killed
        self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    # Called by the simulation

    def after_ms(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> Call:
        return self._file(self.elapsed_ms + max(0.0, delay_ms), callback, args, None)

    async def sleep_ms(self, delay_ms: float) -> None:
        if delay_ms > 0:
            woken = self.create_future()
            self.after_ms(delay_ms, _wake, woken)
            await woken

    def run_until(self, until_ms: float, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Call everything that is due up to then.

        Time stands at `until_ms` afterwards, or where it was enough.
        """
        asyncio.events._set_running_loop(cast(asyncio.AbstractEventLoop, self))
        try:
            while not is_enough():
                if self._ready:
                    self._ready.popleft().make()
                elif self._timers and self._timers[0][0] <= until_ms:
                    when_ms, _, call = heapq.heappop(self._timers)
                    self.elapsed_ms = max(self.elapsed_ms, when_ms)
                    call.make()
                else:
                    self.elapsed_ms = max(self.elapsed_ms, until_ms)
                    return
        finally:
            asyncio.events._set_running_loop(None)

    def _file(
        self,
        when_ms: float,
        callback: Callable[..., object],
        arguments: tuple[Any, ...],
        context: Context | None,
    ) -> Call:
        call = Call(callback, arguments, context, when_ms)
        self._sequence += 1
        heapq.heappush(self._timers, (when_ms, self._sequence, call))
        return call


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
