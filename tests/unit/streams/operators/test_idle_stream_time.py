"""Test how a step's time goes on without records, beside a wall clock that may be set."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from streams.graph.internal_context import StepStreamTime
from streams.operators.idle_stream_time import wrap_with_idle_time_advance
from streams.runtime.tasks.punctuation import TaskPunctuations
from streams.testing.simulated_host import SimulatedHost

DAY_MS = 86_400_000


class IdleStep:
    """Represents a step with `idle_close` of a second, and the stream times that it is told."""

    def __init__(self) -> None:
        self.host = SimulatedHost(100 * DAY_MS)
        self.set_ms = 0
        """By how much the wall clock was set."""
        self.times_ms: list[int] = []
        self._punctuations = TaskPunctuations(self.now_ms)
        context: Any = SimpleNamespace(
            monotonic_s=self.host.monotonic_s,
            schedule_punctuation=self._punctuations.schedule_callback,
        )
        binding: Any = SimpleNamespace(context=context)
        step_time = StepStreamTime(5_000)
        self.process: Callable[[Any, Any, int], None] = wrap_with_idle_time_advance(
            binding, 1_000, step_time, self.times_ms.append, lambda *record: None
        )

    def now_ms(self) -> int:
        return self.host.now_ms() + self.set_ms

    def pass_time(self, quarters: int) -> None:
        """Let so many quarters of a second pass, with a look in each."""
        for _ in range(quarters):
            self.host.advance_wall_clock(250)
            self._punctuations.by_wall_clock.call_due(self.now_ms())


@pytest.mark.parametrize("days", [0, 8, -8])
def test_time_goes_on_by_what_has_passed_wherever_the_wall_clock_is_set(days: int) -> None:
    step = IdleStep()
    step.pass_time(quarters=2)
    step.set_ms += days * DAY_MS
    step.pass_time(quarters=2)
    assert step.times_ms == [], "it was idle for less than a second"
    step.pass_time(quarters=2)
    assert step.times_ms == [6_000, 6_250]


def test_a_record_ends_the_silence() -> None:
    step = IdleStep()
    step.pass_time(quarters=3)
    step.process("k", "v", 5_000)
    step.pass_time(quarters=4)
    assert step.times_ms == []
