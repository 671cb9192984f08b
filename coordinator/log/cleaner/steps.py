"""Work in small steps: a generator that is driven on, and that never holds the loop for long.

The generator yields None where it may be paused, after about half a millisecond of work at most.
Where it has to wait it yields what it waits for, `Started` or `Aside`: it goes on when that is
done, and what came between is raised where it was yielded.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Done: TypeAlias = Callable[[Exception | None], None]


@dataclass(frozen=True, slots=True)
class Started:
    """Something that is begun by calling `start`, and that calls back at its end."""

    start: Callable[[Done], None]


@dataclass(frozen=True, slots=True)
class Aside:
    """A call that takes long and touches no state of the broker: made on another thread."""

    call: Callable[[], None]


Steps: TypeAlias = Generator[Started | Aside | None, None, T]

# What is worth a thread: compressing less than this takes less than half a millisecond or so.
ASIDE_BYTES = 64 << 10


def aside(call: Callable[[], T]) -> Steps[T]:
    """What the call returns, made on another thread if there is one."""
    returned: list[T] = []
    yield Aside(lambda: returned.append(call()))
    return returned[0]


def done_at_once(steps: Steps[T]) -> T:
    """Drive on to the end without a pause; what comes of it. What is started has to be done when
    `start` returns."""
    error: Exception | None = None

    def done(outcome: Exception | None) -> None:
        nonlocal error
        error = outcome

    try:
        while True:
            asked = next(steps) if error is None else steps.throw(error)
            error = None
            match asked:
                case Started(start):
                    start(done)
                case Aside(call):
                    try:
                        call()
                    except Exception as raised:
                        error = raised
    except StopIteration as end:
        result: T = end.value
        return result
