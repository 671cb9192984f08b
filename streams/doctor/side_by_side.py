"""Call a function for several arguments at a time, so that Ctrl-C waits for none of the calls.

A ThreadPoolExecutor joins its threads where it is left, and once more at the end of the process,
and makes the calls that are queued before. Here these are dropped, and threads are daemons. Nor
is a call waited for beyond a deadline.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(eq=False)
class QueuedCall(Generic[T, R]):
    """Represents a call that a thread will make, with a copy of the context of who asked for it."""

    function: Callable[[T], R]
    argument: T
    context: Context
    outcome: Future[R] = field(default_factory=Future)

    def make_call(self) -> None:
        """Make the call, and set its result, or what it raised."""
        try:
            self.outcome.set_result(self.context.run(self.function, self.argument))
        except BaseException as error:  # whoever waits for the result raises it
            self.outcome.set_exception(error)


def call_side_by_side(
    function: Callable[[T], R], arguments: Iterable[T], at_once: int
) -> Iterator[R]:
    """Yield the result of each call in the order of the arguments, or raise what it raised.

    Up to `at_once` calls go on at a time. Once nobody takes results any more no call begins, and
    those that have begun are left alone.
    """
    for call in _make_calls_side_by_side(function, arguments, at_once, math.inf):
        yield call.outcome.result()


def call_until_deadline(
    function: Callable[[T], R], arguments: Iterable[T], at_once: int, deadline_s: float
) -> Iterator[R | None]:
    """Yield the result of each call as `call_side_by_side` does, and None for one without it.

    At `deadline_s`, of the monotonic clock, no call begins any more, and none is waited for.
    """
    for call in _make_calls_side_by_side(function, arguments, at_once, deadline_s):
        yield call.outcome.result() if call.outcome.done() else None


def _make_calls_side_by_side(
    function: Callable[[T], R], arguments: Iterable[T], at_once: int, deadline_s: float
) -> Iterator[QueuedCall[T, R]]:
    """Yield each call once it has its outcome, or at the deadline without one.

    What calls one after the other set in their context is there for the next one, and for whoever
    takes the results. Calls side by side have a copy each.
    """
    shared = copy_context() if at_once == 1 else None
    calls = [
        QueuedCall(function, each, copy_context() if shared is None else shared)
        for each in arguments
    ]
    queued = deque(calls if time.monotonic() < deadline_s else ())
    try:
        for number in range(min(at_once, len(queued))):
            name = f"doctor-{number}"
            threading.Thread(target=_make_calls, args=(queued,), name=name, daemon=True).start()
        for call in calls:
            left_s = deadline_s - time.monotonic()
            if math.isinf(left_s):
                wait([call.outcome])
            elif not wait([call.outcome], max(0.0, left_s)).done:
                queued.clear()
            if shared is not None:
                _adopt_context(shared)
            yield call
    finally:
        queued.clear()


def _adopt_context(context: Context) -> None:
    """Set in the current context what was set in another one."""
    for variable, value in context.items():
        if variable.get(None) is not value:
            variable.set(value)


def _make_calls(queued: deque[QueuedCall[T, R]]) -> None:
    """Make calls of the queue, from which other threads take some as well, until it is empty."""
    while queued:
        try:
            call = queued.popleft()
        except IndexError:  # another thread was faster, or the queue was cleared
            return
        call.make_call()
