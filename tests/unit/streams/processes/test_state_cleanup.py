"""Test that the cleanup runs at its interval by the host's clock, and spares running tasks."""

from __future__ import annotations

import os
from pathlib import Path

from state.directory import StateDirectory
from streams.processes.state_cleanup import StateDirectoryCleaner
from tests.unit.streams.runtime.fakes import Clock


class Looks:
    """Stands in for a stop event that is set at its third wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.waits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        self._clock.advance_monotonic_clock(timeout or 0.0)
        return len(self.waits) > 2

    def is_set(self) -> bool:
        return len(self.waits) > 2

    def set(self) -> None: ...

    def clear(self) -> None: ...


def test_left_over_tasks_go_after_the_delay_and_tasks_of_ours_stay(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    for task in ("0_0", "0_1"):
        (directory.path / task / "store").mkdir(parents=True)
        for path in (directory.path / task / "store", directory.path / task):
            os.utime(path, (1, 1))
    clock = Clock()
    looks = Looks(clock)
    cleaning = StateDirectoryCleaner(
        directory, clock, looks, delay_ms=600_000, list_running_tasks=lambda: ["0_1"]
    )
    cleaning.clean_until_stopped()
    assert looks.waits == [600.0] * 3
    assert not (directory.path / "0_0").exists()
    assert (directory.path / "0_1").exists()
