"""Test what steps measure: latencies at the last one, what sinks write, and what is emitted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from streams import App, Store, serdes, until_time_limit, windows
from tests.unit.streams.bound import BoundTask

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
SIZE = timedelta(milliseconds=10)
OVERHEAD = 8 + 8 + 4 + len("out")
"""What Kafka Streams adds to the size of a record in the topic `out`."""


def test_a_sink_counts_what_it_has_written_and_not_what_was_refused() -> None:
    app = App("a")
    app.stream("in", **TEXT).to("out")
    task = BoundTask(app)
    task.pipe("k", "value", 1, topic="in", headers=())
    (sink,) = (each for each in task.measured.values() if each.written)
    sink.request_next_measurement()
    task.pipe(None, "v", 2, topic="in", headers=[("name", b"x")])
    task.refused["out"] = ValueError("refused")
    with pytest.raises(Exception, match="refused"):
        task.pipe("k", "value", 3, topic="in", headers=())
    assert sink.written["out"].records == 2
    assert sink.written["out"].total_bytes == 6 + 1 + 5 + 2 * OVERHEAD
    assert sink.latency.total == 2


@pytest.mark.parametrize("kind", ["fixed", "chosen", "several"])
def test_the_first_record_after_each_slice_tells_the_size_of_those_that_follow(kind: str) -> None:
    app = App("a")
    chosen = "out" if kind == "fixed" else lambda record: "out"
    partitioner = None if kind != "several" else lambda key, value, count: [0]
    app.stream("in", **TEXT).to(chosen, partitioner=partitioner)
    task = BoundTask(app)
    task.partitions["out"] = 1
    sizes = []
    for number in range(130):
        task.pipe("k", "v" * (1 if number < 64 else 3), 1, topic="in", headers=())
        (sink,) = (each for each in task.measured.values() if each.written)
        sizes.append(sink.written["out"].total_bytes)
        if number == 63:  # a slice ends
            sink.request_next_measurement()
    assert sizes == sorted(sizes), "a counter never goes back"
    assert sink.written["out"].records == 130
    assert sink.latency.total == 2, "the clock is read for these alone"
    assert sizes[-1] == 130 * OVERHEAD + 64 * 2 + 66 * 4


def test_a_step_that_nothing_follows_measures_latencies_of_records_and_of_updates() -> None:
    app = App("a")
    table = app.table("in", **TEXT, store=Store.in_memory("t", caching=False))
    table.filter(lambda key, value: True, name="last", store=Store.in_memory("f", caching=False))
    app.stream("other", **TEXT).for_each(lambda key, value: None, name="each")
    measured: dict[str, int] = {}
    for number, topic in ((0, "in"), (1, "other")):
        task = BoundTask(app, number)
        task.pipe("k", "v", 1, topic=topic, headers=())
        task.pipe("k", "w", 2, topic=topic, headers=())
        measured |= {step: each.latency.total for step, each in task.measured.items()}
    assert {step: count for step, count in measured.items() if count} == {"last": 1, "each": 1}


def test_updates_that_a_suppression_emits_are_counted() -> None:
    app = App("a")
    table = app.table("in", **TEXT, store=Store.in_memory("t", caching=False))
    table.suppress(until_time_limit(1_000), name="wait").to_stream()
    task = BoundTask(app)
    for time_ms, key in ((0, "a"), (10, "b"), (5_000, "c")):
        task.pipe(key, "v", time_ms, topic="in", headers=())
    measured = task.measured["wait"]
    assert measured.emitted_count == 2, "the third one waits"
    emits = measured.suppression_emits
    assert emits is not None
    assert emits.total == 0, "no clock is read for an update"
    for _ in range(2):  # slices
        measured.request_next_measurement()
        assert emits.total == 2
    assert emits.read_figures().rate == pytest.approx(2 / 30)


def test_windows_that_are_emitted_when_they_close_are_counted() -> None:
    app = App("a")
    app.stream("in", **TEXT).group_by_key().windowed_by(windows.tumbling(SIZE)).count(
        store=Store.in_memory("c"), name="count", emit="on_close"
    )
    task = BoundTask(app)
    for time_ms, key in ((1, "a"), (2, "b"), (25, "a")):
        task.pipe(key, "v", time_ms, topic="in", headers=())
    records = task.measured["count"].final_records
    assert records is not None
    assert records.sum == 2
