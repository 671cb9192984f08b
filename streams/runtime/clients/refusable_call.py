"""Wait for a call of a client for no longer than brokers may let the client in.

librdkafka tries refused credentials again for as long as a call may take, and nothing ends a call
early: `send_offsets_to_transaction` can't even be resumed after a short time-out, and where all
brokers were away for a moment it may not keep its own time-out either. So the call runs on a thread
of its own, which is left alone once its outcome does not matter any more.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from streams.runtime.clients.bare_errors import call_and_wrap_bare_error

CHECK_INTERVAL_S = 0.2
"""The seconds between two calls of `require_usable`."""


class _Answer(NamedTuple):
    """Represents the result of a call, or the exception that it raised."""

    result: Any
    error: BaseException | None


def call_while_usable(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    require_usable: Callable[[], None],
    limit_s: float = float("inf"),
) -> Any:
    """Call a function that may wait for a broker, and return its result.

    Raises what `require_usable` raises while the call goes on, and TimeoutError after `limit_s`.
    The outcome of the call is unknown then: it may still take effect, and whoever calls discards
    the client.
    """
    checks_left = limit_s / CHECK_INTERVAL_S
    answers: SimpleQueue[_Answer] = SimpleQueue()
    Thread(
        target=_run_call_and_queue_answer,
        args=(answers, function, arguments),
        name="call",
        daemon=True,
    ).start()
    while True:
        try:
            answer = answers.get(timeout=CHECK_INTERVAL_S)
        except Empty:
            require_usable()
            checks_left -= 1
            if checks_left < 0:
                raise TimeoutError(f"no answer for {limit_s:g} s") from None
            continue
        if answer.error is not None:
            raise answer.error
        return answer.result


def _run_call_and_queue_answer(
    answers: SimpleQueue[_Answer], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    """Call the function, and put what it returns or raises into `answers`."""
    try:
        answer = _Answer(call_and_wrap_bare_error(function, arguments), None)
    except BaseException as error:
        # Without its traceback: this frame has the client and the queue, and a cycle of references
        # would leave the end of the client to the garbage collector.
        answer = _Answer(None, error.with_traceback(None))
    answers.put(answer)
