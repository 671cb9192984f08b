"""What becomes of a worker when an error ends one of its threads: `uncaught_exception_handler`.

    answer                 what happens
    shutdown_client        the other threads commit and leave, the worker ends with the error
    shutdown_application   the same in every worker of the application
    replace_thread         a new thread takes the place in the group, with its tasks and its state

The default is Kafka Streams' (KIP-671): `shutdown_client`. An error that comes back at once (a
record that can't be processed) would have threads replaced without end: the wait before each new
one doubles, from 0.5 s to 30 s, until a thread has run for a minute.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from streams.errors import ApplicationShutdown, TopologyRefused

log = logging.getLogger(__name__)

_FIRST_WAIT_S = 0.5
_WAIT_MAX_S = 30.0
_STEADY_S = 60.0


class Uncaught(StrEnum):
    """The answers; a handler may give their names."""

    REPLACE_THREAD = "replace_thread"
    SHUTDOWN_CLIENT = "shutdown_client"
    SHUTDOWN_APPLICATION = "shutdown_application"


Handler = Uncaught | Callable[[Exception], Any]
"""An answer for all errors, or a function of the error that gives one."""


def checked(given: Any) -> Handler:
    """A handler as a setting may name it. Raises ValueError for anything else."""
    if callable(given) and not isinstance(given, type):
        function: Callable[[Exception], Any] = given
        return function
    try:
        return Uncaught(given)
    except ValueError:
        names = ", ".join(Uncaught)
        raise ValueError(f"{given!r} is none of {names}, nor a function of the error") from None


def answer(handler: Handler, error: Exception) -> Uncaught:
    """What becomes of the worker; of one whose application ends, or whose topology is refused, no
    handler is asked. A handler that fails itself, or answers with something else,
    is logged and ends the worker."""
    if isinstance(error, ApplicationShutdown | TopologyRefused):
        # A thread in its place would be refused too; and what the group runs must not end with it.
        return Uncaught.SHUTDOWN_CLIENT
    if isinstance(handler, Uncaught):
        return handler
    try:
        given = handler(error)
    except Exception:
        log.exception("uncaught_exception_handler failed: the worker ends")
        return Uncaught.SHUTDOWN_CLIENT
    try:
        return Uncaught(given)
    except ValueError:
        names = ", ".join(Uncaught)
        log.error(
            "uncaught_exception_handler returned %r, not one of %s: the worker ends", given, names
        )
        return Uncaught.SHUTDOWN_CLIENT


class BackOff:
    """How long to wait before a thread is replaced, in seconds."""

    def __init__(self) -> None:
        self._next_s = _FIRST_WAIT_S

    def after(self, lived_s: float) -> float:
        """The wait after a thread that has lived so long."""
        if lived_s >= _STEADY_S:
            self._next_s = _FIRST_WAIT_S
        wait_s, self._next_s = self._next_s, min(self._next_s * 2, _WAIT_MAX_S)
        return wait_s
