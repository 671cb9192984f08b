"""Count the tasks that a thread creates and closes, standby tasks included."""

from __future__ import annotations

from collections.abc import Callable

from streams.common.timings import Timing


class TaskLifetimes:
    """Counts the tasks that a thread has created and closed, and how many of late."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self.created = Timing(monotonic_s)
        self.closed = Timing(monotonic_s)

    def note_created(self) -> None:
        """Count a task that was created."""
        self.created.observe(1, self._monotonic_s())

    def note_closed(self) -> None:
        """Count a task that was closed."""
        self.closed.observe(1, self._monotonic_s())
