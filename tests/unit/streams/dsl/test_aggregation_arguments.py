"""Test that arguments an aggregation does not take are refused with what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, serdes, windows
from tests.unit.streams.dsl.mistakes import TEXT, Table, grouped, lines, provoke_refusal, rows


def windowed(app: App) -> Any:
    return grouped(app).windowed_by(windows.tumbling(10))


def add(key: Any, value: Any, total: Any) -> Any:
    return total


MISTAKES: Table = {
    "a store's name by position": (
        lambda app: grouped(app).count("c"),
        ("Grouped of 'read': count(...), too many positional arguments", 'count(store="c")'),
    ),
    "a Store by position": (
        lambda app: windowed(app).count(Store.in_memory("c")),
        ("WindowedGroup of 'read'", "count(store=Store....)"),
    ),
    "a store's name behind a function": (
        lambda app: grouped(app).reduce(min, "least"),
        ('reduce(reducer, store="least")',),
    ),
    "a serde by position": (
        lambda app: grouped(app).aggregate(int, add, serdes.int64),
        ("aggregate(initializer, aggregator, value=serdes....)",),
    ),
    "a table's group with a store's name": (
        lambda app: rows(app).group_by(lambda k, v: (v, k), **TEXT).count("c"),
        ("GroupedTable of 'KTABLE-SELECT", 'count(store="c")'),
    ),
    "a cogroup with a store's name": (
        lambda app: grouped(app).cogroup(add).aggregate(int, "c"),
        ('aggregate(initializer, store="c")',),
    ),
    "emit= without windows": (
        lambda app: grouped(app).count(emit="on_close"),
        ("emit= is about windows: first windowed_by(windows.tumbling(...))", "suppress(...)"),
    ),
    "Kafka Streams' Materialized": (
        lambda app: grouped(app).count(materialized="c"),
        ("materialized= is store= here",),
    ),
    "a slip of the pen": (
        lambda app: grouped(app).count(stor="c"),
        ("did you mean store=?",),
    ),
    "a function too few": (
        lambda app: grouped(app).aggregate(int, value=serdes.int64),
        ("missing a required argument: 'aggregator'", "it takes initializer, aggregator, "),
    ),
    "a merger in the place that it has in Java": (
        lambda app: (
            grouped(app)
            .windowed_by(windows.session(10))
            .aggregate(int, add, lambda key, one, other: one + other)
        ),
        ("the merger of sessions has a name, aggregate(initializer, aggregator, merger=...)",),
    ),
    "a merger of a cogroup in the place that it has in Java": (
        lambda app: (
            grouped(app)
            .cogroup(add)
            .windowed_by(windows.session(10))
            .aggregate(int, lambda key, one, other: one + other)
        ),
        ("the merger of sessions has a name, aggregate(initializer, merger=...)",),
    ),
    "a function by position where there are no sessions": (
        lambda app: grouped(app).aggregate(int, add, add),
        ("it takes initializer, aggregator, commutative=, value=, store=",),
    ),
    "a number by position": (
        lambda app: grouped(app).count(7),
        ("too many positional arguments: it takes store=, name=",),
    ),
}


@pytest.mark.parametrize(("mistake", "parts"), MISTAKES.values(), ids=MISTAKES)
def test_an_argument_that_does_not_fit_is_refused_with_what_to_write(
    mistake: Any, parts: tuple[str, ...]
) -> None:
    message = provoke_refusal(mistake)
    for part in parts:
        assert part in message
    assert "\n" not in message


def test_an_error_inside_of_an_aggregation_is_not_taken_for_a_wrong_argument() -> None:
    message = provoke_refusal(lambda app: lines(app).group_by(lambda k, v: v).count(store="c"))
    assert "needs a key serde" in message
