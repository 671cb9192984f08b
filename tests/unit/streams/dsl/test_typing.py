"""Test which types mypy infers for the DSL; mypy checks this file, and running it proves little."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, assert_type

from streams import App, Processor, Record, serdes
from streams.dsl.global_table import GlobalTable
from streams.dsl.grouped import Grouped
from streams.dsl.stream import Stream
from streams.dsl.table import Table


@dataclass
class Order:
    id: int
    customer: str


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


def test_the_gate_is_strict_about_these_files() -> None:
    """Test that mypy reports an ignore that is not needed, so that `wrong` checks anything."""
    settings = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())
    mypy = settings["tool"]["mypy"]
    assert mypy["strict"] is True
    assert "tests" in mypy["files"]


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


def orders(app: App) -> Stream[str, Order]:
    return app.stream("orders", key=serdes.string, value=serdes.json(Order))


def test_the_type_checker_infers_through_a_chain_of_lambdas() -> None:
    chain = (
        orders(App("a"))
        .filter(lambda key, order: order.id > len(key))
        .peek(lambda key, order: print(order.customer))
        .map_values(lambda order: (order.customer, order.id))
        .flat_map_values(lambda pair: [pair[0].upper(), pair[0].lower()])
        .select_key(lambda key, text: len(key) + len(text))
        .map(lambda length, text: (text, length / 2))
        .flat_map(lambda text, half: [(half, text.encode())])
        .filter_not(lambda half, data: half.is_integer() and data.isdigit())
    )
    assert_type(chain, Stream[float, bytes])


def test_the_type_checker_infers_what_each_step_of_a_stream_makes() -> None:
    app = App("a")
    stream = orders(app)
    assert_type(app.stream(["a", "b"], key=serdes.bytes, value=serdes.none), Stream[bytes, None])
    assert_type(stream.filter(lambda key, order: order.id), Stream[str, Order])
    assert_type(stream.map(lambda key, order: (order.id, key)), Stream[int, str])
    assert_type(stream.flat_map(lambda key, order: [(order.id, key)]), Stream[int, str])
    assert_type(stream.map_values(lambda order: order.id), Stream[str, int])
    assert_type(stream.flat_map_values(lambda order: [order.id]), Stream[str, int])
    assert_type(stream.select_key(lambda key, order: order.id), Stream[int, Order])
    parts = stream.split({"one": lambda key, order: order.id == 1}, default="rest")
    assert_type(parts, dict[str, Stream[str, Order]])
    assert_type(stream.merge(parts["one"], parts["rest"]), Stream[str, Order])
    spread = stream.repartition(partitioner=lambda key, order, partitions: order.id % partitions)
    assert_type(spread, Stream[str, Order])
    assert_type(stream.to_table(), Table[str, Order])
    stream.for_each(lambda key, order: print(key.upper(), order.id))
    stream.to(lambda record: record.value.customer)
    stream.to("out", partitioner=lambda key, order, partitions: len(key) + order.id)


def test_the_type_checker_infers_what_a_join_of_streams_makes() -> None:
    app = App("a")
    stream = orders(app)
    near = timedelta(minutes=5)
    numbers = app.stream("numbers", key=serdes.string, value=serdes.int64)
    pairs = stream.join(numbers, lambda order, number: (order, number), within=near)
    assert_type(pairs, Stream[str, tuple[Order, int]])
    left = stream.left_join(numbers, lambda order, number: (order, number), within=near, grace=1)
    assert_type(left, Stream[str, tuple[Order, int | None]])
    outer = stream.outer_join(numbers, lambda order, number: (order, number), before=1, after=2)
    assert_type(outer, Stream[str, tuple[Order | None, int | None]])
    keyed = stream.join(
        numbers, lambda key, order, number: len(key) + order.id + number, within=5, with_key=True
    )
    assert_type(keyed, Stream[str, int])


def test_the_type_checker_infers_what_a_join_with_a_table_makes() -> None:
    app = App("a")
    stream = orders(app)
    table = app.table("names", key=serdes.string, value=serdes.bytes)
    assert_type(stream.join(table, lambda order, name: name), Stream[str, bytes])
    assert_type(stream.left_join(table, lambda order, name: name), Stream[str, bytes | None])
    keyed = stream.left_join(table, lambda key, order, name: (key, name), with_key=True)
    assert_type(keyed, Stream[str, tuple[str, bytes | None]])
    copies = app.global_table("copies", key=serdes.int64, value=serdes.float64)
    assert_type(copies, GlobalTable[int, float])
    found = stream.join(
        copies, lambda order, share: order.id * share, key=lambda key, order: order.id
    )
    assert_type(found, Stream[str, float])
    maybe = stream.left_join(
        copies, lambda order, share: share, key=lambda key, order: order.id or None
    )
    assert_type(maybe, Stream[str, float | None])


def wrong() -> None:
    """Hold lines that mypy must refuse and never run: mypy reports an ignore that is not needed."""
    app = App("a")
    stream = orders(app)
    table = app.table("names", key=serdes.string, value=serdes.bytes)
    copies = app.global_table("copies", key=serdes.int64, value=serdes.float64)
    app.stream("in", key=str, value=serdes.string)  # type: ignore[call-overload]
    app.stream("in", value=serdes.string)  # type: ignore[call-overload]
    stream.filter(lambda key, order: order.missing)  # type: ignore[attr-defined]
    stream.filter(lambda order: order)  # type: ignore[misc, arg-type]
    stream.map(lambda key, order: order.id)  # type: ignore[arg-type, return-value]
    stream.map_values(lambda key, order: order)  # type: ignore[misc, arg-type]
    stream.map_values(str.upper)  # type: ignore[arg-type]
    stream.flat_map_values(lambda order: order.id)  # type: ignore[arg-type, return-value]
    stream.map_values(lambda order: order.id, value=serdes.string)  # type: ignore[arg-type, return-value]
    stream.select_key(lambda key, order: order.id).filter(lambda key, order: key.upper())  # type: ignore[attr-defined]
    stream.merge(stream.map_values(lambda order: order.id))  # type: ignore[arg-type, return-value]
    stream.to(lambda record: record.value.id)  # type: ignore[arg-type, return-value]
    stream.to("out", value=serdes.string)  # type: ignore[arg-type]
    stream.process(Measure)  # type: ignore[arg-type]
    stream.group_by_key().reduce(lambda old, new: old.id)  # type: ignore[arg-type, return-value]
    stream.join(table, lambda order, name: name + 1)  # type: ignore[operator]
    stream.left_join(table, lambda order, name: name.decode())  # type: ignore[union-attr]
    stream.join(copies, lambda order, share: share, key=lambda key, order: key)  # type: ignore[arg-type, return-value]
    stream.join(copies, lambda order, share: share)  # type: ignore[call-overload]
    stream.count()  # type: ignore[attr-defined]
    stream.repartition(partitioner=lambda key, order: 1)  # type: ignore[misc, arg-type]
