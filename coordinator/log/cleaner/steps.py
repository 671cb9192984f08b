"""Define work in small steps: a generator that never holds the loop for long.

The generator yields None where it may be paused, after about half a millisecond of work at most.
Where it has to wait it yields what it waits for, `AsyncOperation` or `BackgroundCall`: it goes on
when that is done, and an error of that is raised where it was yielded.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Done: TypeAlias = Callable[[Exception | None], None]


@dataclass(frozen=True, slots=True)
class AsyncOperation:
    """Represents an operation that `start` begins, and that calls back at its end."""

    start: Callable[[Done], None]


@dataclass(frozen=True, slots=True)
class BackgroundCall:
    """Represents a long call that touches no state of the broker, to be made on another thread."""

    call: Callable[[], None]


Steps: TypeAlias = Generator[AsyncOperation | BackgroundCall | None, None, T]

# Calls with fewer bytes aren't worth a thread: compressing them takes half a millisecond or so.
BACKGROUND_BYTES_MIN = 64 << 10


def run_in_background(call: Callable[[], T]) -> Steps[T]:
    """Make a call on another thread if there is one, and return its result."""
    returned: list[T] = []
    yield BackgroundCall(lambda: returned.append(call()))
    return returned[0]


def run_to_completion(steps: Steps[T]) -> T:
    """Run steps to their end without a pause, and return their result.

    An operation that they start has to be done when `start` returns.
    """
    error: Exception | None = None

    def store_error(outcome: Exception | None) -> None:
        nonlocal error
        error = outcome

    try:
        while True:
            step = next(steps) if error is None else steps.throw(error)
            error = None
            match step:
                case AsyncOperation(start):
                    start(store_error)
                case BackgroundCall(call):
                    try:
                        call()
                    except Exception as raised:
                        error = raised
    except StopIteration as end:
        result: T = end.value
        return result
