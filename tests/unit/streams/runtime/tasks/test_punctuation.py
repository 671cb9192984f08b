"""Test when schedules are called, how often after a leap of time, and how they end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streams.errors import StreamsError
from streams.runtime.tasks.punctuation import PunctuationQueue, TaskPunctuations


def noted(calls: list[tuple[str, int]], name: str) -> Callable[[int], None]:
    return lambda now_ms: calls.append((name, now_ms))


def test_calls_come_at_the_first_time_plus_a_number_of_intervals() -> None:
    calls: list[tuple[str, int]] = []
    timeline = PunctuationQueue()
    timeline.add_schedule(0, 10, noted(calls, "a"))
    for now_ms in (3, 9, 10, 12, 20, 29):
        timeline.call_due(now_ms)
    assert [now_ms for _, now_ms in calls] == [3, 10, 20]


def test_what_was_missed_is_one_call_with_the_time_that_it_is() -> None:
    calls: list[tuple[str, int]] = []
    timeline = PunctuationQueue()
    timeline.add_schedule(0, 10, noted(calls, "a"))
    assert timeline.call_due(57) == 1
    assert not timeline.follow_clock(59)
    assert timeline.follow_clock(60)


def test_a_clock_that_is_set_back_delays_no_call_for_longer_than_its_interval() -> None:
    calls: list[tuple[str, int]] = []
    timeline = PunctuationQueue()
    timeline.add_schedule(1_000, 1_000, noted(calls, "daily"))
    timeline.add_schedule(1_001, 10, noted(calls, "often"))
    assert not timeline.follow_clock(999)
    for now_ms in (100, 109, 110, 115, 120):
        timeline.call_due(now_ms)
    assert calls == [("often", 110), ("often", 120)]
    timeline.call_due(1_000)
    assert calls[2:] == [("often", 1_000), ("daily", 1_000)]


def test_several_schedules_are_called_in_the_order_of_their_times() -> None:
    calls: list[tuple[str, int]] = []
    timeline = PunctuationQueue()
    timeline.add_schedule(20, 100, noted(calls, "late"))
    timeline.add_schedule(10, 100, noted(calls, "early"))
    timeline.add_schedule(10, 100, noted(calls, "asked for after it"))
    assert timeline.call_due(50) == 3
    assert [name for name, _ in calls] == ["early", "asked for after it", "late"]


def test_what_is_cancelled_is_not_called_and_leaves_no_time_behind() -> None:
    calls: list[tuple[str, int]] = []
    timeline = PunctuationQueue()
    schedule = timeline.add_schedule(0, 10, noted(calls, "a"))
    schedule.cancel()
    assert not timeline.follow_clock(100)
    assert timeline.call_due(100) == 0
    assert calls == []
    assert not timeline, "and costs nothing any more"


def test_a_callback_may_cancel_itself_and_schedule_others() -> None:
    calls: list[tuple[str, int]] = []
    timeline = PunctuationQueue()

    def once(now_ms: int) -> None:
        calls.append(("once", now_ms))
        schedule.cancel()
        timeline.add_schedule(now_ms, 10, noted(calls, "from then on"))

    schedule = timeline.add_schedule(0, 10, once)
    timeline.call_due(5)
    timeline.call_due(15)
    assert calls == [("once", 5), ("from then on", 5), ("from then on", 15)]


def test_stream_time_begins_at_once_and_the_wall_clock_after_an_interval() -> None:
    punctuations = TaskPunctuations(now_ms=lambda: 1_000)
    punctuations.schedule_callback(100, lambda now_ms: None, "stream")
    punctuations.schedule_callback(100, lambda now_ms: None, "wall")
    assert not punctuations.by_stream_time.follow_clock(-1), "no record has come yet"
    assert punctuations.by_stream_time.follow_clock(0)
    assert not punctuations.by_wall_clock.follow_clock(1_099)
    assert punctuations.by_wall_clock.follow_clock(1_100)


@pytest.mark.parametrize(("interval_ms", "clock"), [(0, "stream"), (-5, "wall"), (10, "sun")])
def test_an_interval_or_a_clock_that_there_is_not_is_refused(interval_ms: int, clock: str) -> None:
    with pytest.raises(StreamsError):
        TaskPunctuations(now_ms=lambda: 0).schedule_callback(
            interval_ms, lambda now_ms: None, clock
        )
