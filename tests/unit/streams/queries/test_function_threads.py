"""Test that a function gives its place back however it ends, and is told of only while it runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from streams.errors import QueryFailed, StoreUnavailable
from streams.queries.function_threads import FUNCTIONS_OF_EACH_SCOPE, FunctionThreads
from streams.runtime.threads.query_measurements import QueryMeasurements
from tests.processes import HANG_LIMIT_S

_WAIT_S = 0.5
_TURNS = 20
"""The turns of the loop after which a function's thread was started."""


def test_a_function_that_ends_as_its_time_ends_is_not_overdue() -> None:
    """The time ends, then the function, and only then does the task wake that waits for both."""
    measurements = QueryMeasurements()
    may_end, has_ended = threading.Event(), threading.Event()

    def call() -> str:
        may_end.wait(HANG_LIMIT_S)
        has_ended.set()
        return "found"

    def end_function() -> None:
        may_end.set()
        assert has_ended.wait(HANG_LIMIT_S)
        [running] = [each for each in threading.enumerate() if each.name == "query q"]
        running.join(HANG_LIMIT_S)

    async def ask() -> str:
        functions = FunctionThreads(measurements)
        asking = asyncio.create_task(functions.run_function("q", call, _WAIT_S, is_local=False))
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        # Both are due at the next turn, and are called in the order of their times.
        asyncio.get_running_loop().call_at(0.0, end_function)
        time.sleep(_WAIT_S * 1.2)
        return await asking

    assert asyncio.run(ask()) == "found"
    assert measurements.functions_overdue["q"] == 0


def test_a_function_whose_thread_can_not_be_started_takes_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def ask() -> int:
        functions = FunctionThreads(QueryMeasurements())
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            for _ in range(FUNCTIONS_OF_EACH_SCOPE):
                with pytest.raises(StoreUnavailable, match="'q': can't start new thread"):
                    await functions.run_function("q", lambda: 1, HANG_LIMIT_S, is_local=False)
        return await functions.run_function("q", lambda: 1, HANG_LIMIT_S, is_local=False)

    assert asyncio.run(ask()) == 1


def _stop_iteration() -> int:
    return next(iter(()))


def _end_process() -> int:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("call", "reason"), [(_stop_iteration, "StopIteration: "), (_end_process, "SystemExit: 3")]
)
def test_an_error_that_ends_whom_it_reaches_is_named(call: Callable[[], int], reason: str) -> None:
    async def ask() -> int:
        functions = FunctionThreads(QueryMeasurements())
        with pytest.raises(QueryFailed, match=f"query 'q' has failed: {reason}"):
            await functions.run_function("q", call, HANG_LIMIT_S, is_local=False)
        return await functions.run_function("q", lambda: 1, HANG_LIMIT_S, is_local=False)

    assert asyncio.run(ask()) == 1
