"""Test that a grouped table subtracts a row's old value and adds its new one.

The expected results are those of Kafka Streams 4.3's own TopologyTestDriver.
"""

from __future__ import annotations

from typing import Any, Literal

import pytest

from streams import App, Store, StreamsError, TopologyError, TopologyTestDriver, serdes
from streams.common.changes import Change
from streams.dsl.grouped_table import GroupedTable
from streams.serdes import Serde
from tests.unit.streams.bound import BoundTask

BOTH: Any = {"key": serdes.string, "value": serdes.string}

Fed = list[tuple[str, str | None, int]]
MOVES: Fed = [
    ("ann", "red", 5),
    ("bob", "red", 3),
    ("ann", "blue", 4),
    ("ann", "blue", 9),
    ("bob", None, 7),
    ("bob", None, 8),
]


def by_colour(**source: Any) -> tuple[App, GroupedTable[str, str]]:
    app = App("a")
    people = app.table("people", **BOTH, **source)
    return app, people.group_by(lambda name, colour: (colour, name), **BOTH)


def answers(app: App, table: Any, fed: Fed) -> list[tuple[str, Any, int]]:
    table.to_stream().to("out")
    with TopologyTestDriver(app, stores="memory") as driver:
        for key, value, timestamp_ms in fed:
            driver.topic("people").pipe(key, value, timestamp_ms)
        return [(r.key, r.value, r.timestamp_ms) for r in driver.topic("out").read_all()]


def kept(value: Serde[Any], *, caching: bool = False) -> Store:
    return Store.in_memory("groups", value=value, caching=caching)


def test_a_row_that_moves_is_taken_out_of_one_group_and_then_put_into_the_other() -> None:
    app, grouped = by_colour()
    table = grouped.aggregate(
        lambda: "",
        lambda colour, name, names: f"{names}+{name}",
        lambda colour, name, names: f"{names}-{name}",
        store=kept(serdes.string),
    )
    assert answers(app, table, MOVES) == [
        ("red", "+ann", 5),
        ("red", "+ann+bob", 5),
        ("red", "+ann+bob-ann", 5),
        ("blue", "+ann", 4),
        ("blue", "+ann-ann+ann", 9),
        ("red", "+ann+bob-ann-bob", 7),
    ]


def test_a_group_whose_rows_have_all_gone_counts_none_and_stays() -> None:
    app, grouped = by_colour()
    table = grouped.count(store=kept(serdes.int64))
    assert answers(app, table, MOVES) == [
        ("red", 1, 5), ("red", 2, 5), ("red", 1, 5), ("blue", 1, 4), ("blue", 1, 9), ("red", 0, 7)
    ]  # fmt: skip


def test_a_reducer_takes_the_first_value_as_it_is_and_none_deletes_the_group() -> None:
    app, grouped = by_colour()
    table = grouped.reduce(
        lambda so_far, name: f"{so_far}+{name}",
        lambda so_far, name: None if so_far == name else f"{so_far}-{name}",
        store=kept(serdes.string),
    )
    assert answers(app, table, [*MOVES[:1], ("ann", None, 6), *MOVES[1:2]]) == [
        ("red", "ann", 5), ("red", None, 6), ("red", "bob", 3)
    ]  # fmt: skip


def test_nothing_is_subtracted_from_a_group_that_has_no_value() -> None:
    app, grouped = by_colour()
    calls: list[str] = []

    def subtract(colour: str, name: str, names: str) -> str | None:
        calls.append(name)
        return None

    table = grouped.aggregate(
        lambda: "", lambda colour, name, names: names + name, subtract,
        store=kept(serdes.string),
    )  # fmt: skip
    fed: Fed = [("ann", "red", 1), ("bob", "red", 2), ("ann", None, 3), ("bob", None, 4)]
    assert answers(app, table, fed)[2:] == [("red", None, 3), ("red", None, 4)]
    assert calls == ["ann"]


def repartitioned(app: App, fed: Fed) -> list[tuple[str, Change[str]]]:
    """Return keys and changes that are written to the repartition topic."""
    task = BoundTask(app)
    for key, value, timestamp_ms in fed:
        task.pipe(key, value, timestamp_ms)
        task.flush()
        task.commit_stores()
    changes = serdes.changed(serdes.string)
    return [(key.decode(), changes.deserialize(value)) for key, value in task.pairs]


def test_a_row_that_stays_in_its_group_is_one_record_with_its_old_and_its_new_value() -> None:
    app = App("a")
    people = app.table("people", **BOTH)
    people.group_by(lambda name, colour: (colour[0], colour), **BOTH).count(store="c")
    assert repartitioned(app, [("ann", "red", 1), ("ann", "rose", 2), ("ann", "blue", 3)]) == [
        ("r", Change("red", None)),
        ("r", Change("rose", "red")),
        ("r", Change(None, "rose")),
        ("b", Change("blue", None)),
    ]


def test_keys_that_are_equal_in_python_and_not_as_bytes_are_two_groups() -> None:
    app = App("a")
    flags: dict[str, Any] = {"yes": True, "one": 1, "uno": 1}
    people = app.table("people", **BOTH)
    people.group_by(
        lambda _, value: (flags[value], value), key=serdes.json, value=serdes.string
    ).count()
    fed: Fed = [("ann", "yes", 1), ("ann", "one", 2), ("ann", "uno", 3)]
    assert repartitioned(app, fed) == [
        ("true", Change("yes", None)),
        ("true", Change(None, "yes")),
        ("1", Change("one", None)),
        ("1", Change("uno", "one")),
    ]


@pytest.mark.parametrize("no_group", [None, (None, "value"), ("key", None)])
def test_a_row_without_a_key_or_a_value_there_is_in_no_group(no_group: Any) -> None:
    app = App("a")
    people = app.table("people", **BOTH)
    people.group_by(
        lambda _, value: no_group if value == "none" else (value, value), **BOTH
    ).count()
    assert repartitioned(app, [("ann", "none", 1), ("ann", "red", 2), ("ann", "none", 3)]) == [
        ("red", Change("red", None)),
        ("red", Change(None, "red")),
    ]


def test_an_update_of_a_versioned_table_that_is_out_of_order_reaches_no_group() -> None:
    app, grouped = by_colour(store=Store.versioned("versions", history=100))
    grouped.count()
    assert repartitioned(app, [("ann", "red", 9), ("ann", "blue", 5)]) == [
        ("red", Change("ann", None))
    ]


def test_rows_always_go_through_a_topic_named_after_the_store_or_the_grouping() -> None:
    app, grouped = by_colour()
    grouped.count(store="colours")
    named = app.table("more", **BOTH).group_by(lambda k, v: (k, v), **BOTH, name="same")
    named.count(store="one")
    named.reduce(lambda a, b: b, lambda a, b: a, store="two")
    assert app.topology().repartition_topics == {"a-colours-repartition", "a-same-repartition"}


@pytest.mark.parametrize("processing", ["fail", "skip"])
def test_an_aggregate_may_be_changed_in_place_and_is_the_stores_alone(
    processing: Literal["fail", "skip"],
) -> None:
    app = App("a")
    people = app.table("people", **BOTH)
    grouped = people.group_by(lambda name, value: ("all", value), **BOTH)

    def add(key: str, value: str, seen: list[str]) -> list[str]:
        seen.append(value)
        if value == "poison":
            raise ValueError("half-way")
        return seen

    def take(key: str, value: str, seen: list[str]) -> list[str]:
        seen.remove(value)
        return seen

    grouped.aggregate(list, add, take, store=kept(serdes.json))
    task = BoundTask(app, 1, processing=processing)
    changes = serdes.changed(serdes.string)

    def pipe(new: str | None, old: str | None) -> None:
        task.pipe("all", changes.serialize(Change(new, old)))

    pipe("a", None)
    pipe("b", None)
    if processing == "skip":
        pipe("poison", "a")
    else:
        with pytest.raises(StreamsError, match="half-way"):
            pipe("poison", "a")
        return
    pipe(None, "b")
    assert task.stores["groups"].get("all") == ["a"]


def test_a_value_that_became_the_aggregate_as_it_is_is_not_shared_with_other_aggregations() -> None:
    app = App("a")
    people = app.table("people", key=serdes.string, value=serdes.json)
    grouped = people.group_by(
        lambda name, value: ("all", value), key=serdes.string, value=serdes.json, name="all"
    )
    for store in ("one", "two"):
        grouped.reduce(
            lambda so_far, value: so_far + value, lambda so_far, value: so_far, store=store
        )
    task = BoundTask(app, 1)
    changes = serdes.changed(serdes.json)
    task.pipe("all", changes.serialize(Change(["x"], None)))
    task.stores["one"].get("all").append("changed")
    assert task.stores["two"].get("all") == ["x"]


def test_groups_kept_in_a_versioned_store_are_versions_of_their_aggregate() -> None:
    app, grouped = by_colour()
    table = grouped.count(store=Store.versioned("groups", history=100))
    assert answers(app, table, MOVES) == [
        ("red", 1, 5), ("red", 2, 5), ("red", 1, 5), ("blue", 1, 4), ("blue", 1, 9), ("red", 0, 7)
    ]  # fmt: skip
    assert table._view.is_versioned


def test_cached_groups_answer_with_the_result_at_the_commit() -> None:
    app, grouped = by_colour()
    grouped.count(store=kept(serdes.int64, caching=True)).to_stream().to("out")
    task = BoundTask(app, 1)
    changes = serdes.changed(serdes.string)
    for new, old in (("ann", None), ("bob", None), (None, "ann")):
        task.pipe("red", changes.serialize(Change(new, old)))
    task.flush()
    assert [int.from_bytes(value, "big") for _, value in task.pairs] == [1]


def test_what_cannot_be_grouped_is_refused_by_the_name_of_the_step() -> None:
    app = App("a")
    people = app.table("people", **BOTH)
    with pytest.raises(TopologyError, match=r"'g' calls its function with \(key, value\)"):
        people.group_by(lambda key: (key, key), **BOTH, name="g")  # type: ignore[misc, arg-type]
    with pytest.raises(TopologyError, match=r"'g' needs a key serde"):
        people.group_by(lambda key, value: (value, key), name="g")
    grouped = people.group_by(lambda key, value: (value, key), **BOTH)
    with pytest.raises(TopologyError, match=r"'sum' needs the serde of its aggregate"):
        grouped.aggregate(int, lambda k, v, a: a, lambda k, v, a: a, name="sum")
    with pytest.raises(TopologyError, match=r"'r' calls its function with \(so_far, value\)"):
        grouped.reduce(lambda a, b: a, lambda a: a, name="r")  # type: ignore[misc, arg-type]
