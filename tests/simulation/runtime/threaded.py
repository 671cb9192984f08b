"""Extend a world by processes whose threads take turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.simulation.runtime.threads import SimThread
from tests.simulation.world import Setting, Violation, World

SPINS_MAX = 50_000


class ThreadedWorld(World):
    """Represents a world with processes.

    `current` is the thread that runs now; None: the loop itself. `preemption` is the probability
    that another thread gets its turn at a call.
    """

    def __init__(
        self,
        setting: Setting,
        seed: int,
        topics: Mapping[str, int],
        broker_settings: Mapping[str, Any],
        *,
        preemption: float,
    ) -> None:
        super().__init__(setting, seed, topics, {}, broker_settings)
        self.preemption = preemption
        self.current: SimThread | None = None
        self._spins = 0
        self._spun_at_ms = -1.0

    def running(self) -> SimThread:
        """Return the thread that runs now, and is about to wait."""
        assert self.current is not None, "the loop of a simulation can't wait"
        return self.current

    def require_progress(self) -> None:
        """Fail for a thread that polls again and again without ever waiting."""
        if self.loop.elapsed_ms != self._spun_at_ms:
            self._spins, self._spun_at_ms = 0, self.loop.elapsed_ms
        self._spins += 1
        if self._spins > SPINS_MAX:
            raise Violation("progress", f"{self.current and self.current.name} never waits")
