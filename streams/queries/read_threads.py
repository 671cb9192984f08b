"""Read stores for requests of HTTP on threads, where a read may have to wait.

Those that other workers send (`scope=local`) have threads of their own, or workers that ask each
other could all wait for each other's threads. So do functions of registered queries, which may take
any time (`function_threads`). Look-ups that wait for nothing, or for another worker's row, need no
thread (`prompt_reads`, `prompt_routes`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar

import anyio
from anyio.to_thread import run_sync

from streams.errors import StoreUnavailable
from streams.queries.function_threads import FunctionThreads
from streams.queries.position_bounds import PositionNotReached
from streams.queries.prompt_reads import PromptReads
from streams.queries.prompt_routes import PromptRoutes
from streams.queries.request_terms import RequestTerms
from streams.queries.routed_reads import RoutedReads
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_reads import StoreRead
from streams.runtime.threads.query_measurements import QueryMeasurements

EncodedAnswer: TypeAlias = bytes

R = TypeVar("R")

THREADS_OF_EACH_SCOPE = 16
_POSITION_POLL_S = 0.01
_ENDS_WAIT_S = 0.5
"""The seconds for which a read waits for brokers to say how far behind a standby is."""


class ReadThreads:
    """Reads `reads` on threads, as many at a time as there may be of each scope."""

    def __init__(self, reads: RoutedReads, measurements: QueryMeasurements) -> None:
        self._reads = reads
        self._measurements = measurements
        self._functions = FunctionThreads(measurements)
        self._prompt_reads = PromptReads(reads)
        self._prompt_routes = PromptRoutes(reads, self._prompt_reads)
        self._limits = {
            is_local: anyio.CapacityLimiter(THREADS_OF_EACH_SCOPE) for is_local in (False, True)
        }

    async def read_answer(
        self,
        terms: RequestTerms,
        read: StoreRead,
        encode: Callable[[StoreAnswer], bytes],
        asked_at_s: float | None = None,
    ) -> tuple[StoreAnswer, EncodedAnswer]:
        """Return an answer, and what `encode` makes of it on the thread that has read it.

        `asked_at_s` is when another worker was asked in vain, if one was, a monotonic time in s.
        Raises StoreUnavailable, ConfigError, ValueError, QueryFailed.
        """
        has_asked = asked_at_s is not None
        give_up_at_s = (time.monotonic() if asked_at_s is None else asked_at_s) + terms.wait_s
        while True:
            left_s = max(give_up_at_s - time.monotonic(), 0.0)
            try:
                if read.call is None:
                    found = self._prompt_reads.find_prompt_answer(terms, read)
                    if not found and not has_asked:
                        has_asked = True
                        found = await self._prompt_routes.find_routed_answer(terms, read)
                        left_s = max(give_up_at_s - time.monotonic(), 0.0)
                    if found:
                        return found, encode(found)
                run = partial(self._read_encoded, terms, read, encode, give_up_at_s)
                if read.call is None:
                    return await self._run_in_thread(run, self._limits[terms.is_local], left_s)
                # Else each try would take a place, of which there are few, and a new thread.
                self._prompt_reads.check_position(terms, read)
                return await self._functions.run_function(
                    read.call.query.name, run, left_s, is_local=terms.is_local
                )
            except PositionNotReached:
                # Without a thread: many may wait.
                is_over = left_s <= _POSITION_POLL_S or self._reads.is_stopping
                if is_over or not terms.is_local:
                    raise
            await anyio.sleep(_POSITION_POLL_S)

    def _read_encoded(
        self,
        terms: RequestTerms,
        read: StoreRead,
        encode: Callable[[StoreAnswer], bytes],
        give_up_at_s: float,
    ) -> tuple[StoreAnswer, EncodedAnswer]:
        """Read what may have to be waited for, and return what `encode` makes of it.

        The read has what its wait for a thread has left of the time.
        """
        wait_s = max(give_up_at_s - time.monotonic(), 0.0)
        bounds: Any = {"at_least": terms.at_least, "stale_ok": terms.stale_ok}
        if terms.is_local:
            answer = self._reads.local.read(
                terms.store,
                read,
                partitions=terms.partitions,
                ends_wait_s=min(wait_s, _ENDS_WAIT_S),
                **bounds,
            )
        else:
            answer = self._reads.read(terms.store, read, timeout_s=wait_s, **bounds)
        return answer, encode(answer)

    async def _run_in_thread(
        self, read: Callable[[], R], threads: anyio.CapacityLimiter, wait_s: float
    ) -> R:
        """Return the result of `read`, on one of the threads of its kind.

        Raises StoreUnavailable if all of them are at work for as long as `wait_s`.
        """
        try:
            threads.acquire_nowait()  # mostly there is no wait, and to bound one takes time
        except anyio.WouldBlock:
            with anyio.move_on_after(max(wait_s, _POSITION_POLL_S)) as waiting:
                await threads.acquire()
            if waiting.cancelled_caught:
                self._measurements.refused["reads"] += 1
                raise StoreUnavailable(
                    f"this worker is busy with {threads.total_tokens:.0f} other reads: try again "
                    "later"
                ) from None
        try:
            return await run_sync(read)
        finally:
            threads.release()
