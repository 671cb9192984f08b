"""Log the recoveries of a thread: one line for each cause of an incident, with its repetitions.

An incident lasts from the first recovery until the next commit. Causes are alike that differ in
numbers only: those of a task, a partition or an offset. A cause is logged at once, and those like
it once a minute, with their count.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

log = logging.getLogger("streams.runtime.threads.thread_recovery")

_LOG_INTERVAL_S = 60.0


class RecoveryLog:
    """Logs the recoveries of the thread `name`."""

    def __init__(self, name: str, monotonic_s: Callable[[], float]) -> None:
        self._name = name
        self._monotonic_s = monotonic_s
        self._began_at_s = 0.0
        self._count = 0
        self._causes: dict[str, tuple[float, int]] = {}
        """When each kind of cause was logged last, and how many like it came since."""

    def log_recovery(self, what: str, cause: str, error: Exception | None = None) -> None:
        """Log that `what` starts over because of `cause`, unless one like it was logged just now.

        `what` is empty for the whole thread. `error` tells the symptom where `cause` does not.
        """
        now_s = self._monotonic_s()
        if not self._count:
            self._began_at_s = now_s
        self._count += 1
        kind = re.sub(r"\d+", "#", cause)
        logged_at_s, unlogged_count = self._causes.get(kind, (-_LOG_INTERVAL_S, 0))
        if now_s - logged_at_s < _LOG_INTERVAL_S:
            self._causes[kind] = (logged_at_s, unlogged_count + 1)
            return
        self._causes[kind] = (now_s, 0)
        more = f" ({unlogged_count} more like it in {now_s - logged_at_s:.0f} s)"
        log.warning(
            "%s starts %sover from what is committed: %s%s",
            self._name,
            f"{what} " if what else "",
            cause,
            more if unlogged_count else "",
            extra={"error_class": None if error is None else type(error)},
        )

    def end_incident(self) -> None:
        """End the incident, and log how many recoveries it took if there were several."""
        if not self._count:
            return
        if self._count > 1:
            seconds = self._monotonic_s() - self._began_at_s
            what = "%s commits again, after %d recoveries in %.0f s"
            log.info(what, self._name, self._count, seconds)
        self._count = 0
        self._causes.clear()
