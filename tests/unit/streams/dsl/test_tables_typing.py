"""Test which types mypy infers for tables; mypy checks this file, and running it proves little."""

from __future__ import annotations

from typing import assert_type

from streams import App, ValueTransformer, serdes, until_time_limit
from streams.dsl.grouped_table import GroupedTable
from streams.dsl.stream import Stream
from streams.dsl.table import Table


class Length(ValueTransformer[int, str, float]):
    def transform(self, key: int, value: str | None) -> float | None:
        return None if value is None else len(value) / 2


def test_the_type_checker_infers_what_a_transformer_makes() -> None:
    app = App("a")
    names = app.table("names", key=serdes.int64, value=serdes.string)
    assert_type(names.transform_values(Length), Table[int, float])
    assert_type(names.transform_values(lambda: Length()), Table[int, float])


def test_the_type_checker_infers_what_a_join_of_tables_makes() -> None:
    app = App("a")
    names = app.table("names", key=serdes.int64, value=serdes.string)
    ages = app.table("ages", key=serdes.int64, value=serdes.float64)
    pairs = names.join(ages, lambda name, age: (name.upper(), age + 1))
    assert_type(pairs, Table[int, tuple[str, float]])
    assert_type(names.left_join(ages, lambda name, age: age or len(name)), Table[int, float | int])
    assert_type(names.outer_join(ages, lambda name, age: (name or "").upper()), Table[int, str])


def test_the_type_checker_infers_what_is_made_of_a_tables_groups() -> None:
    app = App("a")
    names = app.table("names", key=serdes.int64, value=serdes.string)
    grouped = names.group_by(
        lambda id_, name: (name[0], len(name)), key=serdes.string, value=serdes.int64
    )
    assert_type(grouped, GroupedTable[str, int])
    assert_type(grouped.count(), Table[str, int])
    assert_type(grouped.reduce(lambda a, b: a + b, lambda a, b: a - b), Table[str, int])
    shares = grouped.aggregate(
        lambda: 0.0,
        lambda key, value, share: share + value / len(key),
        lambda key, value, share: share - value / len(key),
        value=serdes.float64,
    )
    assert_type(shares, Table[str, float])


def test_the_type_checker_infers_through_a_chain_of_tables() -> None:
    names = App("a").table("names", key=serdes.int64, value=serdes.string)
    chain = (
        names.filter(lambda id_, name: id_ > len(name))
        .filter_not(lambda id_, name: name.isupper())
        .map_values(lambda name: name.encode())
        .suppress(until_time_limit(10))
        .map_values(lambda data: data[0])
    )
    assert_type(chain, Table[int, int])
    assert_type(chain.to_stream(), Stream[int, int])


def test_the_type_checker_infers_what_a_foreign_key_joins() -> None:
    app = App("a")
    orders = app.table("orders", key=serdes.string, value=serdes.int64)
    customers = app.table("customers", key=serdes.int64, value=serdes.string)
    joined = orders.join(
        customers, lambda order, name: (order, name), foreign_key=lambda key, order: order
    )
    assert_type(joined, Table[str, tuple[int, str]])
    left = orders.left_join(
        customers, lambda order, name: name, foreign_key=lambda key, order: order or None
    )
    assert_type(left, Table[str, str | None])


def wrong() -> None:
    """Hold lines that mypy must refuse and never run: mypy reports an ignore that is not needed."""
    app = App("a")
    orders = app.table("orders", key=serdes.string, value=serdes.int64)
    customers = app.table("customers", key=serdes.int64, value=serdes.string)
    rows = orders.group_by(lambda key, order: (order, key))
    orders.map_values(lambda key, order: order)  # type: ignore[misc, arg-type]
    orders.join(customers, lambda order, name: name)  # type: ignore[arg-type]
    orders.join(orders, lambda one, other: one + other, value=serdes.string)  # type: ignore[arg-type, return-value]
    orders.left_join(orders, lambda one, other: one + other)  # type: ignore[operator]
    orders.join(customers, max, foreign_key=lambda key, order: key)  # type: ignore[arg-type, return-value]
    orders.outer_join(customers, max, foreign_key=lambda key, order: order)  # type: ignore[arg-type]
    orders.transform_values(Length)  # type: ignore[arg-type]
    orders.group_by(lambda key, order: order)  # type: ignore[arg-type, return-value]
    rows.reduce(lambda so_far, key: so_far + key)  # type: ignore[call-arg]
    rows.reduce(lambda so_far, key: len(key), lambda so_far, key: so_far)  # type: ignore[arg-type, return-value]
    orders.suppress(10)  # type: ignore[arg-type]
    orders.count()  # type: ignore[attr-defined]
