"""What the type checker makes of tables: the gate checks this file; running it proves little."""

from __future__ import annotations

from typing import assert_type

from streams import App, ValueTransformer, serdes
from streams.dsl.grouped_table import GroupedTable
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
