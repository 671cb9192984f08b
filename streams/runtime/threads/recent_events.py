"""Note when a thread last rebalanced and recovered, so that a scrape tells what happened of late.

A counter tells it only to who has read it before.
"""

from __future__ import annotations

from collections.abc import Callable

from streams.runtime.counters import ThreadCounters

_START_S = 60.0
"""The first rebalances of a thread are its start, and no event."""


class RecentEvents:
    """Holds the monotonic times at which counters of a thread were last seen to rise."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._started_at_s = monotonic_s()
        self._rebalances = self._recoveries = 0
        self._rebalanced_at_s: float | None = None
        self._recovered_at_s: float | None = None

    def note_new_events(self, counters: ThreadCounters) -> None:
        """Note the time if the thread has rebalanced or recovered; called at each poll."""
        if counters.rebalances != self._rebalances:
            self._rebalances = counters.rebalances
            now_s = self._monotonic_s()
            if now_s - self._started_at_s >= _START_S:
                self._rebalanced_at_s = now_s
        if counters.recoveries != self._recoveries:
            self._recoveries = counters.recoveries
            self._recovered_at_s = self._monotonic_s()

    @property
    def rebalance_age_s(self) -> float | None:
        """Return the seconds since the last rebalance after the first minute; None without one."""
        return self._measure_age_s(self._rebalanced_at_s)

    @property
    def recovery_age_s(self) -> float | None:
        """Return the seconds since the last recovery; None without one."""
        return self._measure_age_s(self._recovered_at_s)

    def _measure_age_s(self, at_s: float | None) -> float | None:
        return None if at_s is None else self._monotonic_s() - at_s
