"""An answer that may come at once or later: from a plain callback to what the router awaits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from coordinator.shard.shard import BrokenInvariant
from coordinator.shard.slices import Sliced, SlicedWork

logger = logging.getLogger(__name__)

A = TypeVar("A")


def answer_of(start: Callable[[Callable[[A], None]], None], reply: Callable[[A], Any]) -> Any:
    """Call `start` with a callback; what the callback is given becomes the reply.

    The reply itself if the callback was called before `start` returned, else a coroutine for it.
    A callback after the connection has gone is ignored, unless it brings an exception: see
    `_report`.
    """
    given: list[A] = []
    future: asyncio.Future[A] | None = None

    def callback(answer: A) -> None:
        if future is None:
            given.append(answer)
        elif not future.done():
            future.set_result(answer)
        elif isinstance(answer, Exception):
            _report(answer)

    start(callback)
    if given:
        return reply(given[0])
    future = asyncio.get_running_loop().create_future()
    return _reply_later(future, reply)


def answer_in_slices(work: Sliced[A], sliced: SlicedWork, reply: Callable[[A], Any]) -> Any:
    """Run the work in slices; what it returns becomes the reply, what it raises is raised.

    As `answer_of`, but that the work goes on to its end if the connection has gone.
    """

    def reply_or_raise(outcome: A | Exception) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return reply(outcome)

    return answer_of(partial(sliced.run, work), reply_or_raise)


def _report(error: Exception) -> None:
    """Report an exception for which no client waits any more: log it, or raise BrokenInvariant, so
    that whoever called back stops the broker."""
    if isinstance(error, BrokenInvariant):
        raise error
    logger.error("a request failed after its client had gone", exc_info=error)


async def _reply_later(future: asyncio.Future[A], reply: Callable[[A], Any]) -> Any:
    return reply(await future)
