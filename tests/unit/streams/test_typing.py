"""What the type checker makes of the DSL: the gate checks this file; running it proves little."""

from __future__ import annotations

from typing import Any, assert_type

from streams import (
    App,
    Processor,
    Record,
    Windowed,
    serdes,
    until_time_limit,
    until_window_closes,
    windows,
)
from streams.dsl.grouped import Grouped
from streams.dsl.stream import Stream
from streams.dsl.table import Table


class Measure(Processor[str, str, bytes, int]):
    def process(self, record: Record[str, str]) -> None:
        assert_type(record.with_value(1), Record[str, int])
        assert_type(record.with_key(1), Record[int, str])
        assert_type(record.headers, tuple[tuple[str, bytes | None], ...])
        self.context.forward(record.with_key(b"").with_value(len(record.value)))


class MeasureValues(Processor[str, str, str, int]):
    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_value(len(record.value)))


class Untyped(Processor):
    stores = ["any"]  # noqa: RUF012  what a user types

    def process(self, record: Record) -> None:
        self.context.forward(record)


def test_the_type_checker_infers_keys_and_values() -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    assert_type(stream.process(Measure), Stream[bytes, int])
    assert_type(stream.process(lambda: Measure()), Stream[bytes, int])
    assert_type(stream.process_values(MeasureValues), Stream[str, int])
    assert_type(stream.process(Untyped), Stream[Any, Any])
    grouped = stream.group_by(lambda key, value: len(value), key=serdes.int64)
    assert_type(grouped, Grouped[int, str])
    assert_type(grouped.count(), Table[int, int])
    assert_type(grouped.reduce(lambda old, new: old + new), Table[int, str])
    total = grouped.aggregate(
        lambda: 0.0, lambda key, value, sum_: sum_ + len(value) + key, value=serdes.float64
    )
    assert_type(total, Table[int, float])
    assert_type(total.to_stream(), Stream[int, float])


def test_the_type_checker_infers_what_a_join_makes() -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    numbers = app.stream("numbers", key=serdes.string, value=serdes.int64)
    joined = stream.join(numbers, lambda text, number: (text, number), within=5)
    assert_type(joined, Stream[str, tuple[str, int]])
    keyed = stream.join(
        numbers, lambda key, text, number: len(key) + len(text) + number, within=5, with_key=True
    )
    assert_type(keyed, Stream[str, int])


def test_the_type_checker_infers_what_a_foreign_key_joins_and_what_suppress_leaves() -> None:
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
    # A foreign key is a key of the other table, and the outer join has none.
    orders.join(customers, max, foreign_key=lambda key, order: key)  # type: ignore[arg-type, return-value]
    windowed = orders.to_stream().group_by_key().windowed_by(windows.tumbling(10)).count()
    assert_type(windowed.suppress(until_window_closes()), Table[Windowed[str], int])
    assert_type(orders.suppress(until_time_limit(10)), Table[str, int])
