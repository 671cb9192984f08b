"""Test the figures of calls: totals since the start, the others of the last minute."""

from __future__ import annotations

import pytest

from streams.common.timings import SAMPLE_S, Timing
from streams.runtime.threads.timings import TaskTimings, ThreadTimings
from tests.unit.streams.runtime.fakes import Clock


def observe(timing: Timing, clock: Clock, *values: float) -> None:
    for value in values:
        timing.observe(value, clock.monotonic_s())


def test_nothing_observed_is_zero() -> None:
    figures = Timing(Clock().monotonic_s).read_figures()
    assert (figures.average, figures.maximum, figures.rate, figures.ratio) == (0, 0, 0, 0)


def test_averages_and_maxima_are_of_the_values_and_rates_of_the_time() -> None:
    clock = Clock()
    timing = Timing(clock.monotonic_s)
    observe(timing, clock, 1.0, 2.0)
    clock.advance_monotonic_clock(SAMPLE_S)
    observe(timing, clock, 6.0)
    clock.advance_monotonic_clock(10)
    figures = timing.read_figures()
    assert figures.average == pytest.approx(3.0)
    assert figures.maximum == 6.0
    assert figures.rate == pytest.approx(3 / (SAMPLE_S + 10))
    assert figures.ratio == pytest.approx(9 / (SAMPLE_S + 10))


def test_a_first_value_makes_no_rate_of_thousands() -> None:
    clock = Clock()
    timing = Timing(clock.monotonic_s)
    observe(timing, clock, 0.5)
    assert timing.read_figures().rate == pytest.approx(1 / SAMPLE_S)


def test_old_values_are_forgotten_but_for_the_total() -> None:
    clock = Clock()
    timing = Timing(clock.monotonic_s)
    observe(timing, clock, 9.0)
    clock.advance_monotonic_clock(3 * SAMPLE_S)
    assert timing.read_figures().maximum == 0, "nothing was observed for a minute"
    observe(timing, clock, 2.0)
    assert timing.read_figures().maximum == 2.0, "a sample from before the pause is too old"
    assert timing.total == 2


def test_a_poll_and_a_slice_have_seconds_and_records() -> None:
    clock = Clock()
    timings = ThreadTimings(clock.monotonic_s)
    began_at_s = clock.monotonic_s()
    clock.advance_monotonic_clock(0.5)
    timings.add_poll(began_at_s, 10)
    of_task = TaskTimings(clock.monotonic_s)
    of_task.add_slice(0.25, 7)
    of_task.add_slice(0.75, 3)
    for _ in range(2):  # what was observed is not observed again
        of_task.observe_slices(timings)
    assert timings.poll.read_figures().average == pytest.approx(0.5)
    assert timings.poll_records.read_figures().maximum == 10
    for each in (timings, of_task):
        assert (each.process.total, each.process.sum, each.process_records.sum) == (2, 1.0, 10)
        assert (each.process.read_figures().maximum, each.process.read_figures().average) == (
            0.75,
            0.5,
        )
        assert each.process_records.read_figures().maximum == 7
