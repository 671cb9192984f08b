"""Test that a self-join keeps its records once where `topology_optimization` says so."""

from __future__ import annotations

import random
from typing import Any

import pytest

from streams import App, serdes
from tests.unit.streams.bound import BoundTask
from tests.unit.streams.operators.test_stream_joins import pair, results

BOTH: Any = {"key": serdes.string, "value": serdes.string}


def joined(optimization: str, *, kind: str = "join", **how: Any) -> App:
    app = App("a", topology_optimization=optimization)
    stream = app.stream("in", **BOTH)
    how = {"joiner": pair, "within": 10, "name": "j"} | how
    getattr(stream, kind)(stream, **how).to("out", value=serdes.string)
    return app


def test_one_store_is_enough() -> None:
    [subtopology] = joined("single.store.self.join").topology().subtopologies
    assert [spec.name for spec in subtopology.stores] == ["j-this-join-store"]
    assert [node.name for node in subtopology.nodes][1:3] == ["j-this-windowed", "j-merge"]


@pytest.mark.parametrize("optimization", ["none", "merge.repartition.topics"])
def test_without_the_optimization_there_are_two(optimization: str) -> None:
    [subtopology] = joined(optimization).topology().subtopologies
    assert len(subtopology.stores) == 2


def test_a_left_join_of_a_stream_with_itself_stays_as_it_is() -> None:
    [subtopology] = joined("all", kind="left_join").topology().subtopologies
    assert len(subtopology.stores) == 3


def test_two_sources_of_one_topic_are_one_stream() -> None:
    app = App("a", topology_optimization="all")
    rekeyed = app.stream("in", **BOTH).select_key(lambda key, value: value, key=serdes.string)
    rekeyed.join(rekeyed, pair, within=10)
    assert len(app.topology().subtopologies[1].stores) == 1


@pytest.mark.parametrize("seed", range(20))
def test_the_results_are_the_same_in_the_same_order(seed: int) -> None:
    rnd = random.Random(seed)
    before, after, grace = rnd.choice([0, 3, 10]), rnd.choice([0, 3, 10]), rnd.choice([1, 100])
    tasks = [
        BoundTask(joined(each, within=None, before=before, after=after, grace=grace))
        for each in ("none", "all")
    ]
    oldest = before + after + grace - 1
    timestamp_ms, newest = 200, 0
    for number in range(60):
        timestamp_ms = max(1, timestamp_ms + rnd.choice([0, 0, 1, 2, 5, -1, -4, -12]))
        if timestamp_ms == max(newest, timestamp_ms) - oldest:
            continue  # the only time at which Kafka Streams' two ways differ
        newest = max(newest, timestamp_ms)
        key = rnd.choice("ab")
        for task in tasks:
            task.pipe(key, f"v{number}", timestamp_ms)
        plain, single = map(results, tasks)
        assert single == plain, f"{seed=} {number=} {timestamp_ms=}"


def test_records_without_a_key_or_a_value_are_dropped_and_counted_once() -> None:
    task = BoundTask(joined("all"))
    task.pipe(None, "a", 5)
    task.pipe("k", None, 5)
    assert results(task) == []
    assert task.dropped_count == 2


def test_a_restart_goes_on_where_it_was() -> None:
    app = joined("all")
    task = BoundTask(app)
    task.pipe("k", "a", 100)
    task.commit_stores()
    again = BoundTask(app, stores=task.stores)
    again.pipe("k", "b", 101)
    again.pipe("k", "late", 50)
    assert results(again) == [("b+a", 101), ("a+b", 101), ("b+b", 101)]


def test_a_joiner_that_fails_may_be_skipped() -> None:
    def fussy(value: str, other: str) -> str:
        if (value, other) == ("b", "b"):
            raise ValueError("no")
        return pair(value, other)

    task = BoundTask(joined("all", joiner=fussy), processing="skip")
    task.pipe("k", "a", 1)
    task.pipe("k", "b", 2)
    task.pipe("k", "c", 2)
    assert [value for value, _ in results(task)] == [
        "a+a", "b+a", "a+b", "c+a", "c+b", "a+c", "b+c", "c+c"
    ]  # fmt: skip


def test_records_without_a_key_reach_a_left_join_through_its_repartition_topics() -> None:
    def dropped(kind: str) -> list[str]:
        app = App("a")
        left = app.stream("left", **BOTH).select_key(lambda key, value: key, key=serdes.string)
        getattr(left, kind)(app.stream("right", **BOTH), pair, within=10)
        nodes = [node.name for sub in app.topology().subtopologies for node in sub.nodes]
        return [name for name in nodes if name.endswith("-repartition-filter")]

    assert dropped("left_join") == []
    assert dropped("outer_join") == []
    assert len(dropped("join")) == 1
