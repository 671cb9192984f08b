"""Test the figures of a run under a paced load."""

from __future__ import annotations

from benchmarks.peers.latency import (
    LatencyCase,
    LatencyFigures,
    compute_latency,
    create_latency_table,
)


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
