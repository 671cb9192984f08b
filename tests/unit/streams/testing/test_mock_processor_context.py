"""Test that a processor runs alone, and that what it does is kept for the test."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from streams import Processor, Record, Store, StreamsError, TopologyError, serdes
from streams.testing import MockProcessorContext


class Tally(Processor[str, str, str, int]):
    """Counts by key, forwards to `out`, and forgets all each minute."""

    def init(self, context: Any) -> None:
        self.counts = context.store("counts")
        self.cancel = context.schedule(timedelta(minutes=1), self.forget, clock="wall")

    def process(self, record: Record[str, str]) -> None:
        self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)
        self.context.forward(record.with_value(self.counts.get(record.key)), to="out")
        self.context.commit()

    def forget(self, now_ms: int) -> None:
        for key, _ in self.counts.all():
            self.counts.delete(key)
        self.cancel()


def test_forwards_schedules_commits_and_stores_are_kept() -> None:
    store = Store.persistent("counts", key=serdes.string, value=serdes.int64)
    context = MockProcessorContext([store])
    tally = context.start_processor(Tally())
    for value in ("x", "y"):
        tally.process(Record("ann", value, 70))
    assert [(each.record.value, each.to) for each in context.forwarded] == [(1, "out"), (2, "out")]
    assert context.commit_count == 2
    assert context.store("counts").entry("ann").timestamp_ms == 70
    tally.process(Record("bob", "x", 60))
    assert context.store("counts").entry("bob").timestamp_ms == 60
    assert context.stream_time_ms == 70
    [punctuator] = context.scheduled
    assert (punctuator.interval_ms, punctuator.clock) == (60_000, "wall")
    punctuator.call_back(60_000)
    assert list(context.store("counts").all()) == []
    assert punctuator.is_cancelled


def test_what_a_task_would_refuse_is_refused() -> None:
    context = MockProcessorContext()
    with pytest.raises(StreamsError, match="has no store 'counts'"):
        context.start_processor(Tally())
    with pytest.raises(TypeError, match="takes a Record"):
        context.forward("ann")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="interval must be at least 1 ms"):
        context.schedule(0, print)
    with pytest.raises(ValueError, match="clock='bogus' is neither 'stream' nor 'wall'"):
        context.schedule(timedelta(seconds=1), print, clock="bogus")  # type: ignore[arg-type]
    assert context.scheduled == []


class Remember(Processor[str, str, str, str]):
    """Keeps each value with its time, and notes the last timer."""

    def init(self, context: Any) -> None:
        self.history = context.store("history")
        context.schedule(10, lambda now_ms: self.history.put("timer", "now"))

    def process(self, record: Record[str, str]) -> None:
        self.history.put(record.key, record.value)


def test_writes_have_the_time_of_the_record_or_of_the_timer() -> None:
    hour = timedelta(hours=1)
    store = Store.versioned("history", history=hour, key=serdes.string, value=serdes.string)
    context = MockProcessorContext([store])
    remember = context.start_processor(Remember())
    remember.process(Record("k", "v", 123))
    assert context.store("history").get("k").timestamp_ms == 123
    context.scheduled[0].call_back(150)
    assert context.store("history").get("timer").timestamp_ms == 150


def test_what_java_calls_is_said_with_what_there_is() -> None:
    context: Any = MockProcessorContext()
    context.forward(Record("ann", 5, 0), to="child")
    context.schedule(10, print)
    guesses: list[tuple[Any, str]] = [
        (lambda: context.forwarded(), r"lists, and not called: forwarded\[0\]\.record"),
        (lambda: context.scheduled(), "lists, and not called"),
        (lambda: context.forwarded[0].childName, "'childName': to"),
        (lambda: context.scheduled[0].getInterval, "'getInterval': interval_ms"),
        (lambda: context.scheduled[0].cancelled, "'cancelled': is_cancelled"),
        (lambda: context.setRecordTimestamp(5), "record_timestamp_ms = "),
        (lambda: context.schedule(10, "wall", print), 'the callback comes second.*clock="wall"'),
        (lambda: context.schedule(10, print, type="wall"), r"\(here it is clock=\)"),
    ]
    for call, part in guesses:
        with pytest.raises((AttributeError, TypeError, TopologyError), match=part):
            call()
