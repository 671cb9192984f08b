"""What the type checker makes of tables: the gate checks this file; running it proves little."""

from __future__ import annotations

from typing import assert_type

from streams import App, serdes
from streams.dsl.table import Table


def test_the_type_checker_infers_what_a_join_of_tables_makes() -> None:
    app = App("a")
    names = app.table("names", key=serdes.int64, value=serdes.string)
    ages = app.table("ages", key=serdes.int64, value=serdes.float64)
    pairs = names.join(ages, lambda name, age: (name.upper(), age + 1))
    assert_type(pairs, Table[int, tuple[str, float]])
    assert_type(names.left_join(ages, lambda name, age: age or len(name)), Table[int, float | int])
    assert_type(names.outer_join(ages, lambda name, age: (name or "").upper()), Table[int, str])
