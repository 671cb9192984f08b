"""Stop a broker whose state and log no longer agree, before the log is harmed.

A BrokenInvariant that a request or a scheduled call raises is recorded here. From then on no
request is answered and no scheduled call is made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from coordinator.clock import Scheduler, Timer
from coordinator.shard.shard import BrokenInvariant

log = logging.getLogger(__name__)


class FailStop:
    """Records the first failure of a broker and requests that the broker stops.

    Kafka's counterpart is ProcessTerminatingFaultHandler.
    """

    def __init__(self, request_stop: Callable[[], None]) -> None:
        self.failure: BaseException | None = None
        self._request_stop = request_stop

    def stop_on_failure(self, error: BaseException) -> None:
        """Record a failure, unless there is one already, and request a stop."""
        log.critical("the broker stops: %s", error)
        if self.failure is None:
            self.failure = error
        self._request_stop()


class GuardedScheduler:
    """Passes calls on to another scheduler and makes them only until the broker has failed.

    A BrokenInvariant that such a call raises stops the broker, as one that a request raises does;
    the scheduler itself would only log it. Calls that fall due after that are not made.
    """

    def __init__(self, scheduler: Scheduler, fail_stop: FailStop) -> None:
        self._scheduler = scheduler
        self._fail_stop = fail_stop

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._scheduler.call_later(delay_ms, partial(self._call_unless_failed, callback))

    def _call_unless_failed(self, callback: Callable[[], None]) -> None:
        if self._fail_stop.failure is not None:
            return
        try:
            callback()
        except BrokenInvariant as error:
            self._fail_stop.stop_on_failure(error)
