"""Test that aggregate and reduce fold records, and that nothing changes the store's own objects."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, StreamsError, serdes
from streams.graph.nodes import StoreSpec
from tests.unit.streams.bound import BoundTask

BOTH: Any = {"key": serdes.string, "value": serdes.string}


def collect(key: str, value: str, seen: list[str]) -> list[str]:
    """Append the value to the aggregate in place, as an aggregator may."""
    seen.append(value)
    if value == "poison":
        raise ValueError("half-way")
    return seen


def collecting(*, caching: bool = False, **handlers: Any) -> BoundTask:
    app = App("a")
    grouped = app.stream("in", **BOTH).group_by_key()
    kept = Store.in_memory("c", caching=caching)
    grouped.aggregate(list, collect, value=serdes.json, store=kept).to_stream().to("out")
    return BoundTask(app, **handlers)


def values(task: BoundTask, topic: str = "out") -> list[Any]:
    return [
        None if value is None else serdes.json.deserialize(value)
        for name, _, value, *_ in task.produced
        if name == topic
    ]


def test_an_aggregator_is_handed_key_value_and_aggregate() -> None:
    app = App("a")
    app.stream("in", **BOTH).group_by_key().aggregate(
        lambda: "begin", lambda key, value, so_far: f"{so_far} {key}={value}", value=serdes.string
    ).to_stream().to("out")
    task = BoundTask(app)
    for key, value in (("a", "1"), ("b", "2"), ("a", "3")):
        task.pipe(key, value)
    task.flush()
    assert task.pairs == [(b"b", b"begin b=2"), (b"a", b"begin a=1 a=3")]


def test_a_reducer_is_handed_the_old_and_the_new_value_from_the_second_on() -> None:
    app = App("a")
    app.stream("in", **BOTH).group_by_key().reduce(
        lambda old, new: f"{old}+{new}", store=Store.in_memory("c", caching=False)
    ).to_stream().to("out")
    task = BoundTask(app)
    for value in "xyz":
        task.pipe("k", value)
    assert task.pairs == [(b"k", b"x"), (b"k", b"x+y"), (b"k", b"x+y+z")]


def test_a_result_has_the_largest_time_of_its_records() -> None:
    task = collecting(caching=True)
    for timestamp_ms in (5, 9, 7):
        task.pipe("k", "v", timestamp_ms)
    task.flush()
    assert [timestamp_ms for *_, timestamp_ms, _ in task.produced] == [9]


def test_records_without_key_or_value_are_passed_over() -> None:
    task = collecting()
    task.pipe(None, "v")
    task.pipe("k", None)
    assert task.produced == []
    assert task.dropped_count == 2


def test_none_deletes_the_key_and_the_next_record_begins_anew() -> None:
    app = App("a")
    app.stream("in", **BOTH).group_by_key().aggregate(
        list,
        lambda key, value, seen: None if value == "end" else [*seen, value],
        value=serdes.json,
        store=Store.in_memory("c", caching=False),
    ).to_stream().to("out")
    task = BoundTask(app)
    for timestamp_ms, value in ((9, "a"), (9, "end"), (3, "b")):
        task.pipe("k", value, timestamp_ms)
    assert values(task) == [["a"], None, ["b"]]
    assert [timestamp_ms for *_, timestamp_ms, _ in task.produced] == [9, 9, 3]


def test_a_key_that_comes_and_goes_between_two_commits_is_not_seen() -> None:
    app = App("a")
    app.stream("in", **BOTH).group_by_key().reduce(
        lambda old, new: None if new == "end" else new,
        store="c",
    ).to_stream().to("out")
    task = BoundTask(app)
    seen = []
    for commit in (["a", "end"], ["b"], ["end"]):
        for value in commit:
            task.pipe("k", value)
        task.flush()
        task.commit_stores()
        seen.append(task.pairs)
        task.produced.clear()
    assert seen == [[], [(b"k", b"b")], [(b"k", None)]]


def test_an_aggregate_changed_in_place_is_gone_in_a_rollback() -> None:
    task = collecting()
    task.pipe("k", "kept")
    task.commit_stores()
    task.pipe("k", "lost")
    task.stores["c"].rollback_transaction()
    task.pipe("k", "next")
    assert values(task)[-1] == ["kept", "next"]


@pytest.mark.parametrize("caching", [True, False])
def test_what_comes_after_cannot_change_the_aggregate(caching: bool) -> None:
    app = App("a")
    kept = Store.in_memory("c", caching=caching)
    table = (
        app.stream("in", **BOTH)
        .group_by_key()
        .aggregate(list, collect, value=serdes.json, store=kept)
    )
    changed = table.to_stream().map_values(lambda seen: [seen.pop() for _ in range(len(seen))])
    changed.to("out", value=serdes.json)
    task = BoundTask(app)
    for value in "ab":
        task.pipe("k", value)
        task.flush()
        task.commit_stores()
    assert task.stores["c"].get("k") == ["a", "b"]
    assert values(task)[-1] == ["b", "a"]


def test_a_value_that_became_the_aggregate_is_not_shared_with_other_branches() -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.json)
    stream.group_by_key().reduce(lambda old, new: old + new, store=Store.in_memory("c"))
    stream.for_each(lambda key, value: value.clear())
    task = BoundTask(app)
    task.pipe("k", "[1]")
    task.pipe("k", "[2]")
    assert task.stores["c"].get("k") == [1, 2]


def test_a_record_that_is_skipped_half_way_leaves_the_aggregate_as_it_was() -> None:
    task = collecting(processing="skip")
    for value in ("a", "poison", "b"):
        task.pipe("k", value)
    assert values(task) == [["a"], ["a", "b"]]
    assert task.stores["c"].get("k") == ["a", "b"]


@pytest.mark.parametrize("caching", [True, False])
def test_a_key_whose_only_record_is_skipped_is_not_written(caching: bool) -> None:
    task = collecting(caching=caching, processing="skip")
    task.pipe("k", "poison")
    task.flush()
    assert task.produced == []
    assert task.stores["c"].drain_writes() == []


def test_an_aggregator_that_raises_is_named() -> None:
    with pytest.raises(StreamsError, match=r"KSTREAM-AGGREGATE.*in\[0\]@7.*half-way.* in collect"):
        collecting().pipe("k", "poison")


def test_the_serde_of_the_aggregate_may_be_the_stores() -> None:
    app = App("a")
    kept = Store.in_memory("c", value=serdes.json)
    app.stream("in", **BOTH).group_by_key().aggregate(list, collect, store=kept)
    (spec,) = app.topology().subtopologies[0].stores
    assert isinstance(spec, StoreSpec)
    assert spec.value is serdes.json
