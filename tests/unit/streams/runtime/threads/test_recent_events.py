"""Test that a thread's rebalances and recoveries of late are told by their age."""

from __future__ import annotations

from streams.runtime.counters import ThreadCounters
from streams.runtime.threads.recent_events import RecentEvents
from tests.unit.streams.runtime.fakes import Clock


def test_a_rebalance_is_an_event_once_the_thread_has_started() -> None:
    clock, counters = Clock(), ThreadCounters()
    events = RecentEvents(clock.monotonic_s)
    counters.rebalances = 2
    events.note_new_events(counters)
    assert events.rebalance_age_s is None, "its start"
    clock.advance_monotonic_clock(90)
    events.note_new_events(counters)
    assert events.rebalance_age_s is None, "no other came"
    counters.rebalances = 3
    events.note_new_events(counters)
    clock.advance_monotonic_clock(7)
    events.note_new_events(counters)
    assert events.rebalance_age_s == 7


def test_the_age_is_that_of_the_last_recovery() -> None:
    clock, counters = Clock(), ThreadCounters()
    events = RecentEvents(clock.monotonic_s)
    assert events.recovery_age_s is None
    for _ in range(2):
        counters.recoveries += 1
        events.note_new_events(counters)
        clock.advance_monotonic_clock(5)
    assert events.recovery_age_s == 5
