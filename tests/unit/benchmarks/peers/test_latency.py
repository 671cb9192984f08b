"""Test the figures of a run under a paced load."""

from __future__ import annotations

from benchmarks.peers.latency import (
    LatencyCase,
    LatencyFigures,
    compute_latency,
    create_latency_table,
)
from benchmarks.peers.timed_worker import POLLED, WAITED, StepTimes


def test_a_stall_counts_for_every_record_that_it_delays() -> None:
    # A record is due each ms for a second; results stand still for the first 100 ms.
    latencies = [max(100.0 - due_ms, 1.0) for due_ms in range(1_000)]
    assert compute_latency(latencies, 0.5) == LatencyFigures(1.0, 91.0, 100.0, 0.5)


def test_the_table_has_a_line_for_each_way_of_a_load() -> None:
    case = LatencyCase(10_000, 20)
    figures = LatencyFigures(30.2, 61.0, 80.9, 1.4)
    columns = create_latency_table({case: {"loop": figures}}, "a title").columns
    cells = [next(iter(column.cells)) for column in columns]
    assert cells == ["map at 10,000/s, commit every 20 ms", "loop", "30", "61", "81", "1"]


def test_what_was_polled_waits_for_the_next_commit_and_not_for_one_after_it() -> None:
    times = StepTimes()
    times.add_poll([0, 0])
    times.add_poll([0])
    times.begin_commit()
    times.begin_commit()
    assert len(times.durations_ms[POLLED]) == 3
    assert len(times.durations_ms[WAITED]) == 3
    times.durations_ms["one"] += [3.0, 1.0, 2.0]
    assert times.summarize()["one"] == [2.0, 3.0]
