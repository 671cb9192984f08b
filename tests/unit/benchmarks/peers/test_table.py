"""Test the table and the JSON of the comparison, and which runs are planned."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.peers.samples import PeerFigures
from benchmarks.peers.table import Results, create_table
from benchmarks.peers.workloads import (
    KAFKA_STREAMS,
    LOOP,
    MILLRACE,
    TRANSACTIONAL,
    Workload,
    choose_ways,
    choose_workloads,
    create_workloads,
    plan_runs,
)

WORKLOADS = create_workloads(1_000)


@pytest.fixture(name="results")
def _results() -> Results:
    results = Results()
    results.add("map", KAFKA_STREAMS, PeerFigures(400_000, 2.0, 500.0))
    for rate in (90_000, 100_000, 120_000):
        results.add("map", MILLRACE, PeerFigures(rate, 8.0, 100.0))
    results.add_void("map", LOOP, "2 records, expected 3 to 3")
    return results


def test_ratios_are_of_medians_and_a_void_way_shows(results: Results) -> None:
    columns = [list(column.cells) for column in create_table(results, "a title").columns]
    assert list(zip(*columns, strict=True)) == [
        ("map", LOOP, "void", "", "", "", ""),
        ("map", MILLRACE, "100.0", "8.00", "100", "", ""),
        ("map", KAFKA_STREAMS, "400.0", "2.00", "500", "0.25", "4.00"),
    ]


def test_the_json_has_the_medians(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "figures.json", "a title")
    written = json.loads((tmp_path / "figures.json").read_text())
    assert written["title"] == "a title"
    lines = written["figures"]
    assert [(each["way"], each["records_per_s"], each["runs"]) for each in lines] == [
        (KAFKA_STREAMS, 400_000, 1),
        (MILLRACE, 100_000, 3),
    ]


def test_a_void_run_beside_good_ones_is_left_out(results: Results) -> None:
    results.add_void("map", MILLRACE, "it hung")
    assert results.medians("map")[MILLRACE].records_per_s == 100_000
    assert len(results.void) == 2


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.name)
def test_ways_take_turns_and_none_is_always_first(workload: Workload) -> None:
    count = len(workload.ways)
    runs = list(plan_runs(workload, rounds=count))
    assert set(Counter(runs).values()) == {count}
    rounds = [runs[begin : begin + count] for begin in range(0, len(runs), count)]
    assert all(set(each) == set(workload.ways) for each in rounds)
    assert {each[0] for each in rounds} == set(workload.ways)


def test_ways_that_are_not_chosen_do_not_run() -> None:
    assert list(plan_runs(WORKLOADS[0], 2, choose_ways("millrace,loop"))) == [
        LOOP,
        MILLRACE,
        MILLRACE,
        LOOP,
    ]
    assert list(plan_runs(WORKLOADS[-1], 2, [LOOP])) == []
    with pytest.raises(ValueError, match="no way is named 'faust': there are loop"):
        choose_ways("faust")


def test_only_some_workloads_have_a_loop() -> None:
    looped = [each.name for each in WORKLOADS if LOOP in each.ways]
    assert looped == ["map", "count of 10k keys", "count of 1M keys"]


def test_kafka_streams_runs_with_transactional_stores_too_where_there_is_a_store() -> None:
    without = [each.name for each in WORKLOADS if TRANSACTIONAL not in each.ways]
    assert without == ["map"]


def test_workloads_are_chosen_by_parts_of_their_names() -> None:
    chosen = [each.name for each in choose_workloads(WORKLOADS, "map,stream-stream")]
    assert chosen == ["map", "stream-stream join"]
    assert choose_workloads(WORKLOADS, "") == WORKLOADS
    with pytest.raises(ValueError, match="there are map"):
        choose_workloads(WORKLOADS, "nothing")
