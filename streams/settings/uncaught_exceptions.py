"""Decide what becomes of a worker when an error ends one of its threads.

    uncaught_exception_handler   what happens
    shutdown_client              the other threads commit and leave, the worker ends with the error
    shutdown_application         all workers of the application do so
    replace_thread               a new thread takes the place in the group, with its tasks and its
                                 state

The default is Kafka Streams' (KIP-671): `shutdown_client`. An error that comes back at once (a
record that can't be processed) would have threads replaced without end: the wait before each new
one doubles, from 0.5 s to 30 s, until a thread has run for a minute.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Literal

from streams.common.function_signatures import check_setting_function
from streams.errors import ApplicationShutdown, TopologyRefused

log = logging.getLogger(__name__)

_FIRST_WAIT_S = 0.5
_WAIT_MAX_S = 30.0
_STEADY_S = 60.0


class UncaughtExceptionResponse(StrEnum):
    """Names the responses of an uncaught exception handler, which may return them as text.

    Kafka Streams' StreamThreadExceptionResponse.
    """

    REPLACE_THREAD = "replace_thread"
    SHUTDOWN_CLIENT = "shutdown_client"
    SHUTDOWN_APPLICATION = "shutdown_application"


UncaughtResponseName = Literal["replace_thread", "shutdown_client", "shutdown_application"]
"""The text of a response, which stands for it in settings and in what a handler returns."""
UncaughtExceptionHandler = (
    UncaughtExceptionResponse
    | Callable[[Exception], UncaughtExceptionResponse | UncaughtResponseName]
)
"""A response to all errors, or a function of the error that returns one."""


def parse_uncaught_handler(value: Any) -> UncaughtExceptionHandler:
    """Return a setting's value as a handler: a response, or a function of the error.

    Raises ValueError for anything else, also for a function that does not take the error.
    """
    if callable(value) and not isinstance(value, type):
        check_setting_function(value, "error")
        return value  # type: ignore[no-any-return]
    try:
        return UncaughtExceptionResponse(value)
    except ValueError:
        names = ", ".join(repr(str(each)) for each in UncaughtExceptionResponse)
        raise ValueError(f"{value!r} is not one of {names}, nor a function of the error") from None


def call_uncaught_handler(
    handler: UncaughtExceptionHandler, error: Exception
) -> UncaughtExceptionResponse:
    """Return the handler's response to an error.

    SHUTDOWN_CLIENT without asking the handler for ApplicationShutdown and TopologyRefused. A
    handler that raises, or returns something else, is logged and counts as SHUTDOWN_CLIENT.
    """
    if isinstance(error, ApplicationShutdown | TopologyRefused):
        # A replacing thread would be refused too, and the group's other workers must go on.
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT
    if isinstance(handler, UncaughtExceptionResponse):
        return handler
    try:
        response = handler(error)
    except Exception:
        log.exception("uncaught_exception_handler failed: the worker ends")
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT
    try:
        return UncaughtExceptionResponse(response)
    except ValueError:
        names = ", ".join(UncaughtExceptionResponse)
        log.error(
            "uncaught_exception_handler returned %r, not one of %s: the worker ends",
            response,
            names,
        )
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT


class ReplacementBackOff:
    """Computes how long to wait before a thread is replaced, doubling from 0.5 s to 30 s."""

    def __init__(self) -> None:
        self._next_wait_s = _FIRST_WAIT_S

    def take_wait_s(self, lived_s: float) -> float:
        """Return how many seconds to wait before replacing a thread, and double the next wait.

        A thread that has run for a minute resets the wait.
        """
        if lived_s >= _STEADY_S:
            self._next_wait_s = _FIRST_WAIT_S
        wait_s, self._next_wait_s = self._next_wait_s, min(self._next_wait_s * 2, _WAIT_MAX_S)
        return wait_s
