"""Test that table-table joins answer each update as Kafka Streams 4.3's own driver does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from streams import App, Store, StreamsError, TopologyError, serdes
from streams.dsl.table import Table
from tests.unit.streams.bound import BoundTask

BOTH: Any = {"key": serdes.string, "value": serdes.string}
KINDS = ["join", "left_join", "outer_join"]

Fed = tuple[str, str | None, int]
"""Topic, value, timestamp of a record of the key "k"."""

FED: Sequence[Fed] = [
    ("left", "1", 5),
    ("right", "x", 3),
    ("left", "2", 1),
    ("right", None, 9),
    ("right", None, 10),
    ("left", None, 11),
    ("left", None, 12),
    ("right", "y", 13),
    ("right", None, 14),
]


def beside(left: str | None, right: str | None) -> str:
    return f"{left or '-'}|{right or '-'}"


def two_tables(caching: bool = False) -> tuple[App, Table[str, str], Table[str, str]]:
    app = App("a")
    left, right = (
        app.table(name, **BOTH, store=Store.in_memory(f"of-{name}", caching=caching))
        for name in ("left", "right")
    )
    return app, left, right


def answers(app: App, table: Table[Any, Any], fed: Sequence[Fed]) -> list[tuple[str | None, int]]:
    """Return the updates of `table` after each record, each of which has its own transaction."""
    table.to_stream().to("out", value=serdes.string)
    task = BoundTask(app)
    for topic, value, timestamp_ms in fed:
        task.pipe("k", value, timestamp_ms, topic=topic)
        task.flush()
        task.commit_stores()
    return [(value and value.decode(), time_ms) for _, _, value, time_ms, _ in task.produced]


EXPECTED: dict[str, list[tuple[str | None, int]]] = {
    "join": [("1|x", 5), ("2|x", 3), (None, 9), (None, 10)],  # No consumer needs old values.
    "left_join": [("1|-", 5), ("1|x", 5), ("2|x", 3), ("2|-", 9), ("2|-", 10), (None, 11)],
    "outer_join": [("1|-", 5), ("1|x", 5), ("2|x", 3), ("2|-", 9), ("2|-", 10), (None, 11),
                   ("-|y", 13), (None, 14)],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_of_either_side_is_joined_with_the_other_and_has_the_later_timestamp(
    kind: str,
) -> None:
    app, left, right = two_tables()
    assert answers(app, getattr(left, kind)(right, beside), FED) == EXPECTED[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("caching", [False, True])
def test_a_join_that_is_kept_answers_the_same_and_its_store_has_the_result(
    kind: str, caching: bool
) -> None:
    app, left, right = two_tables()
    kept = Store.in_memory("kept", caching=caching, value=serdes.string)
    table = getattr(left, kind)(right, beside, store=kept)
    table.to_stream().to("out")
    task = BoundTask(app)
    for topic, value, timestamp_ms in FED[:3]:
        task.pipe("k", value, timestamp_ms, topic=topic)
        task.flush()
        task.commit_stores()
    assert task.pairs[-1] == (b"k", b"2|x")
    assert task.stores["kept"].entry("k") == ("2|x", 3)


def test_a_cached_join_tells_nobody_of_a_deletion_where_nothing_was() -> None:
    app, left, right = two_tables()
    kept = Store.in_memory("kept", value=serdes.string)
    out = answers(app, left.join(right, beside, store=kept), FED[:5])
    assert out == [("1|x", 5), ("2|x", 3), (None, 9)]


def test_a_joiner_that_returns_none_deletes_the_row() -> None:
    app, left, right = two_tables()
    table = left.join(right, lambda own, other: None if own == "2" else own + other)
    assert answers(app, table, FED[:3]) == [("1x", 5), (None, 3)]


def test_a_table_joined_with_itself_answers_once_for_each_of_its_two_sides() -> None:
    app = App("a")
    table = app.table("left", **BOTH, store="of-left")
    out = answers(app, table.join(table, beside), [("left", "1", 5), ("left", "2", 6)])
    assert out == [("1|1", 5), ("1|1", 5), ("2|2", 6), ("2|2", 6)]


def test_the_old_result_is_joined_of_the_old_value_and_what_the_other_side_has_now() -> None:
    app = App("a")
    table = app.table("left", **BOTH, store=Store.in_memory("s", caching=False))
    # A filter passes on the deletion of what was there before: "1|2", of the left side.
    seen = table.join(table, beside).filter(lambda key, value: value == "1|2")
    assert answers(app, seen, [("left", "1", 5), ("left", "2", 6)]) == [(None, 6)]


def test_a_join_that_is_not_kept_is_joined_anew_for_a_step_that_asks_for_its_values() -> None:
    app, left, right = two_tables()
    third = app.table("third", **BOTH, store=Store.in_memory("of-third", caching=False))
    table = third.join(left.outer_join(right, beside), lambda own, other: f"{own}:{other}")
    out = answers(app, table, [("left", "1", 5), ("third", "t", 2), ("right", "x", 9)])
    assert out == [("t:1|-", 5), ("t:1|x", 9)]


def test_sources_that_are_joined_are_kept_though_no_store_was_named() -> None:
    app = App("a")
    app.table("left", **BOTH).join(app.table("right", **BOTH), beside, name="both")
    (sub,) = app.topology().subtopologies
    assert len(sub.stores) == 2
    steps = [node.name for node in sub.nodes]
    assert steps[-3:] == ["both-join-this", "both-join-other", "both"]


def test_an_update_of_a_versioned_table_that_is_out_of_order_is_dropped_and_counted() -> None:
    app = App("a")
    left = app.table("left", **BOTH, store=Store.versioned("versions", history=100))
    right = app.table("right", **BOTH, store="of-right")
    left.join(right, beside).to_stream().to("out", value=serdes.string)
    task = BoundTask(app)
    for topic, value, timestamp_ms in (("right", "x", 1), ("left", "2", 9), ("left", "1", 5)):
        task.pipe("k", value, timestamp_ms, topic=topic)
        task.flush()
    assert (task.pairs, task.dropped_count) == ([(b"k", b"2|x")], 1)


def test_a_join_kept_in_a_versioned_store_is_versioned_and_another_is_not() -> None:
    app = App("a")
    tables = [
        app.table(name, **BOTH, store=Store.versioned(name, history=100)) for name in ("x", "y")
    ]
    kept = Store.versioned("kept", history=100, value=serdes.string)
    assert not tables[0].join(tables[1], beside)._view.is_versioned
    assert tables[0].join(tables[1], beside, store=kept)._view.is_versioned


def test_a_joiner_that_raises_names_its_step_and_a_handler_may_skip_the_record() -> None:
    app, left, right = two_tables()
    table = left.join(right, lambda own, other: f"{int(own)}{other}", name="sum")
    table.to_stream().to("out", value=serdes.string)
    skipping, failing = BoundTask(app, processing="skip"), BoundTask(app)
    for value in ("one", "1"):
        skipping.pipe("k", value, topic="left")
        skipping.pipe("k", "x", topic="right")
    assert skipping.pairs == [(b"k", b"1x")] * 2
    failing.pipe("k", "one", topic="left")
    with pytest.raises(StreamsError, match="sum-join-other"):
        failing.pipe("k", "x", topic="right")


def test_both_sides_are_to_have_equal_numbers_of_partitions() -> None:
    app, left, right = two_tables()
    left.join(right, beside)
    assert app._builder.graph.copartitioned == [(left._node, right._node)]


def test_what_cannot_be_joined_is_refused_by_the_name_of_the_step() -> None:
    app, left, right = two_tables()
    _, _, foreign = two_tables()
    with pytest.raises(TopologyError, match=r"'j' joins a table with another one"):
        left.join(app.stream("more", **BOTH), beside, name="j")  # type: ignore[call-overload]
    with pytest.raises(TopologyError, match=r"'j' puts streams of two applications together"):
        left.join(foreign, beside, name="j")
    with pytest.raises(TopologyError, match=r"'j' needs a function"):
        left.join(right, "x", name="j")  # type: ignore[call-overload]
    with pytest.raises(TopologyError, match=r"'kept' of step 'j' needs a value serde"):
        left.join(right, beside, store="kept", name="j")
