"""Run the functions of registered queries on threads that nobody has to wait for.

Python can't end a function. So one that takes longer than who has asked will wait goes on, and is
told of: by the error that the caller gets in time, by a line in the log and by a metric. It keeps
its place, of which there are few, and the worker stops without it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import anyio

from streams.errors import QueryFailed, StoreUnavailable
from streams.runtime.threads.query_measurements import QueryMeasurements

log = logging.getLogger(__name__)

R = TypeVar("R")

FUNCTIONS_OF_EACH_SCOPE = 4
_WAIT_MIN_S = 0.01


@dataclass(eq=False)
class RunningFunction:
    """Represents a call of a query's function, from its beginning to its end."""

    query: str
    began_s: float = field(default_factory=time.monotonic)
    is_overdue: bool = False

    def describe_call(self) -> str:
        """Return the query's name with how long it has run."""
        return f"{self.query!r} for {time.monotonic() - self.began_s:.0f} s"


class FunctionThreads:
    """Runs so many functions at a time, for clients and, apart from these, for other workers.

    It is used on the thread of one event loop.
    """

    def __init__(self, measurements: QueryMeasurements) -> None:
        self._measurements = measurements
        self._running: dict[bool, list[RunningFunction]] = {False: [], True: []}
        self._places = {
            is_local: anyio.CapacityLimiter(FUNCTIONS_OF_EACH_SCOPE) for is_local in self._running
        }

    async def run_function(
        self, query: str, call: Callable[[], R], wait_s: float, *, is_local: bool
    ) -> R:
        """Return the result of `call`, which calls the function of a query. Raises its errors.

        Raises StoreUnavailable, with the queries that run, if there is no place for it within
        `wait_s`, or no thread can be started; and if it has not ended by then.
        """
        give_up_at_s = anyio.current_time() + wait_s
        function = RunningFunction(query)
        await self._wait_for_place(function, wait_s, is_local=is_local)
        function.began_s = time.monotonic()
        self._running[is_local].append(function)
        loop = asyncio.get_running_loop()
        outcome: Future[R] = Future()
        ended = anyio.Event()

        def finish_function() -> None:
            self._leave_place(function, is_local=is_local)
            self._note_end_of_overdue_function(function)
            ended.set()

        def run_call() -> None:
            _complete_call(query, call, outcome)
            with suppress(RuntimeError):  # of a loop that is closed, since the worker has stopped
                loop.call_soon_threadsafe(finish_function)

        try:
            threading.Thread(target=run_call, name=f"query {query}", daemon=True).start()
        except RuntimeError as error:
            self._leave_place(function, is_local=is_local)
            raise StoreUnavailable(
                f"this worker can't start a thread for the function of query {query!r}: {error}"
            ) from error
        with anyio.move_on_after(max(give_up_at_s - anyio.current_time(), _WAIT_MIN_S)):
            await ended.wait()
        # The function may have ended between the end of the time and this task's turn.
        if outcome.done():
            return outcome.result()
        self._note_overdue_function(function)
        raise StoreUnavailable(
            f"the function of query {query!r} has not ended within {wait_s:.3g} s: it runs on, and "
            "its result is lost. Ask for less, or with a longer wait"
        )

    async def _wait_for_place(
        self, function: RunningFunction, wait_s: float, *, is_local: bool
    ) -> None:
        """Wait for a place among the functions that run. Raises StoreUnavailable."""
        with anyio.move_on_after(max(wait_s, _WAIT_MIN_S)) as waiting:
            await self._places[is_local].acquire_on_behalf_of(function)
        if waiting.cancelled_caught:
            self._measurements.refused["functions"] += 1
            running = ", ".join(each.describe_call() for each in self._running[is_local])
            raise StoreUnavailable(
                f"this worker runs {FUNCTIONS_OF_EACH_SCOPE} functions of queries, as many as may "
                f"be: {running}"
            )

    def _leave_place(self, function: RunningFunction, *, is_local: bool) -> None:
        """Give the place of a function that does not run to the next one."""
        self._running[is_local].remove(function)
        self._places[is_local].release_on_behalf_of(function)

    def _note_overdue_function(self, function: RunningFunction) -> None:
        """Tell of a function that runs on although nobody waits for it."""
        function.is_overdue = True
        self._measurements.functions_overdue[function.query] += 1
        log.warning(
            "the function of query %s runs on, and nobody waits for it any more: it has one of "
            "the %d places of such functions until it ends",
            function.describe_call(),
            FUNCTIONS_OF_EACH_SCOPE,
        )

    def _note_end_of_overdue_function(self, function: RunningFunction) -> None:
        """Tell that a function has ended for which nobody waits."""
        if function.is_overdue:
            self._measurements.functions_overdue[function.query] -= 1
            log.info("the function of query %s has ended", function.describe_call())


def _complete_call(query: str, call: Callable[[], R], outcome: Future[R]) -> None:
    """Set the result of `call`, or its error.

    What ends a loop or a coroutine that it reaches, such as SystemExit and StopIteration, becomes
    QueryFailed.
    """
    try:
        value = call()
    except BaseException as error:
        is_error = isinstance(error, Exception) and not isinstance(error, StopIteration)
        outcome.set_exception(error if is_error else _create_failure(query, error))
    else:
        outcome.set_result(value)


def _create_failure(query: str, error: BaseException) -> QueryFailed:
    """Create the error that names the query and what its function has raised."""
    failure = QueryFailed(f"query {query!r} has failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
