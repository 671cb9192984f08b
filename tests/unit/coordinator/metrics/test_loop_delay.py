"""Test how the delays of the event loop are measured."""

from __future__ import annotations

from coordinator.metrics.loop_delay import INTERVAL_MS, LoopDelayMeter
from tests.unit.coordinator.fakes import FakeClock


def test_a_call_that_keeps_the_loop_busy_delays_the_timer() -> None:
    clock = FakeClock()
    meter = LoopDelayMeter(clock, clock)
    meter.start_timer()
    clock.advance(2 * INTERVAL_MS)
    assert (meter.delays.count, meter.delays.sum_s) == (2, 0)
    clock.spend(INTERVAL_MS + 70)
    clock.advance(0)
    assert (meter.delays.count, meter.delays.sum_s) == (3, 0.07)
    meter.close()
    assert clock.scheduled() == 0
