"""Turn a callback's argument into a response: at once, or by an awaitable if it comes later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias, TypeVar

from coordinator.shard.shard import BrokenInvariant
from coordinator.shard.slices import Sliced, SlicedExecutor

logger = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")

# A response, or a coroutine for it.
Deferrable: TypeAlias = R | Coroutine[Any, Any, R]


def answer_on_callback(
    start: Callable[[Callable[[A], None]], None], build_response: Callable[[A], R]
) -> Deferrable[R]:
    """Call `start` with a callback and build the response from what the callback is given.

    Returns the response if the callback was called before `start` returned, else a coroutine for
    it. A callback after the connection was closed is ignored, unless it brings an exception: see
    `_report_late_error`.
    """
    received: list[A] = []
    future: asyncio.Future[A] | None = None

    def accept_answer(answer: A) -> None:
        if future is None:
            received.append(answer)
        elif not future.done():
            future.set_result(answer)
        elif isinstance(answer, Exception):
            _report_late_error(answer)

    start(accept_answer)
    if received:
        return build_response(received[0])
    future = asyncio.get_running_loop().create_future()
    return _await_and_build(future, build_response)


def answer_in_slices(
    sliced_work: Sliced[A], executor: SlicedExecutor, build_response: Callable[[A], R]
) -> Deferrable[R]:
    """Run work in slices; build the response from its result, or raise what it has raised.

    The work goes on to its end if the connection is closed meanwhile.
    """

    def build_or_raise(outcome: A | Exception) -> R:
        if isinstance(outcome, Exception):
            raise outcome
        return build_response(outcome)

    return answer_on_callback(partial(executor.run_in_slices, sliced_work), build_or_raise)


def _report_late_error(error: Exception) -> None:
    """Log an exception that no client waits for any more, or raise a BrokenInvariant.

    Raising it lets the scheduler that made the call stop the broker.
    """
    if isinstance(error, BrokenInvariant):
        raise error
    logger.error("a request failed after its client had gone", exc_info=error)


async def _await_and_build(future: asyncio.Future[A], build_response: Callable[[A], R]) -> R:
    return build_response(await future)
