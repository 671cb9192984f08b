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
        self._silent_ids: set[str] = set()
        self.silent_answers = 0
        """How often a coordinator that was silent has been asked."""
        self._spins = 0
        self._spun_at_ms = -1.0

    def silence_coordinator(self, id_end: str, for_ms: int) -> None:
        """Let the coordinator of the transactional ids that end so answer nothing for a time."""
        self._silent_ids.add(id_end)
        self.loop.after_ms(for_ms, self._silent_ids.discard, id_end)

    def is_coordinator_silent(self, transactional_id: str) -> bool:
        is_silent = transactional_id.endswith(tuple(self._silent_ids))
        self.silent_answers += is_silent
        return is_silent

    def let_coordinators_answer(self) -> None:
        self._silent_ids.clear()

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
