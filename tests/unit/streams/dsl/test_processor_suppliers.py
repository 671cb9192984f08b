"""Test suppliers of processors that bring their stores (Kafka Streams' ConnectedStoreProvider)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import (
    App,
    Processor,
    ProcessorSupplier,
    Record,
    Store,
    TopologyError,
    TopologyTestDriver,
    ValueTransformer,
    serdes,
)

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


class Sum(Processor[str, str, str, str]):
    def __init__(self, store: str) -> None:
        self.store = store

    def process(self, record: Record[str, str]) -> None:
        sums = self.context.store(self.store)
        sums.put(record.key, (sums.get(record.key) or "") + record.value)
        self.context.forward(record.with_value(sums.get(record.key)))


class SumSupplier:
    """Makes processors with a store of its own, as a Java class of this kind does."""

    def __init__(self, store: str) -> None:
        self.store = Store.persistent(store, **TEXT)

    def get(self) -> Sum:
        return Sum(self.store.name)

    def stores(self) -> list[Store]:
        return [self.store]


Describe = Callable[[App, Any], object]
WAYS: dict[str, Describe] = {
    "process": lambda app, supplier: app.stream("in", **TEXT).process(supplier, **TEXT).to("out"),
    "process_values": lambda app, supplier: (
        app.stream("in", **TEXT).process_values(supplier).to("out")
    ),
    "add_processor": lambda app, supplier: (
        app.topology_builder()
        .add_source("in", "in", **TEXT)
        .add_processor("sum", supplier, "in")
        .add_sink("out", "out", "sum", **TEXT)
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_supplier_brings_its_stores(way: str) -> None:
    app = App("suppliers")
    supplier: ProcessorSupplier[str, str, str, str] = SumSupplier("sums")
    WAYS[way](app, supplier)
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe_many([("a", "x"), ("a", "y")])
        assert driver.topic("out").read_values() == ["x", "xy"]
        assert driver.store("sums").get("a") == "xy"


def test_two_steps_share_the_store_that_one_supplier_brings() -> None:
    app, supplier = App("suppliers"), SumSupplier("sums")
    app.stream("in", **TEXT).process_values(supplier).to("out")
    app.stream("in-2", **TEXT).process_values(supplier).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("a", "x")
        driver.topic("in-2").pipe("a", "y")
        assert driver.topic("out").read_values() == ["x", "xy"]


def test_two_stores_of_one_name_are_refused_as_in_kafka_streams() -> None:
    app = App("suppliers")
    app.stream("in", **TEXT).process_values(SumSupplier("sums"))
    with pytest.raises(TopologyError, match="store 'sums' is used twice"):
        app.stream("in-2", **TEXT).process_values(SumSupplier("sums"))


def test_a_supplier_needs_no_stores_of_its_own() -> None:
    class Plain:
        def get(self) -> Sum:
            return Sum("sums")

    app = App("suppliers")
    sums = Store.persistent("sums", **TEXT)
    app.stream("in", **TEXT).process_values(Plain(), stores=[sums]).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("a", "x")
        assert driver.topic("out").read_values() == ["x"]


def test_a_supplier_makes_transformers_of_a_table() -> None:
    class Count(ValueTransformer[str, str, str]):
        def transform(self, key: str, value: str | None) -> str:
            calls = self.context.store("calls")
            calls.put(key, (calls.get(key) or "") + "+")
            return f"{value}{calls.get(key)}"

    class CountSupplier:
        def get(self) -> Count:
            return Count()

        def stores(self) -> list[Store]:
            return [Store.persistent("calls", **TEXT)]

    app = App("suppliers")
    app.table("in", **TEXT).transform_values(CountSupplier(), store="rows").to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe_many([("a", "x"), ("a", "y")])
        assert driver.topic("out").read_values() == ["x+", "y++"]


def test_a_supplier_fills_a_global_store() -> None:
    store = Store.persistent("prices", **TEXT)

    class Fill(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.store("prices").put(record.key, record.value * 2)

    class FillSupplier:
        def get(self) -> Fill:
            return Fill()

        def stores(self) -> list[str]:
            return ["prices"]

    app = App("suppliers")
    app.stream("in", **TEXT).to("out")
    app.topology_builder().add_global_store(store, "prices", FillSupplier())
    with TopologyTestDriver(app) as driver:
        driver.topic("prices").pipe("a", "x")
        assert driver.store("prices").get("a") == "xx"


def test_a_wrapper_may_return_a_supplier_with_stores() -> None:
    calls = Store.in_memory("calls", **TEXT)

    class Wrapped:
        def __init__(self, create_processor: Callable[[], Any]) -> None:
            self.get = create_processor

        def stores(self) -> list[Store]:
            return [calls]

    app = App("wrapped", processor_wrapper=lambda step, create: Wrapped(create))
    app.stream("in", **TEXT).filter(lambda k, v: True).process_values(SumSupplier("sums")).to("out")
    (sub,) = app.topology().subtopologies
    assert {spec.name for spec in sub.stores} == {"calls", "sums"}
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("a", "x")
        assert driver.topic("out").read_values() == ["x"]


class Same:
    one = Sum("sums")

    def get(self) -> Sum:
        return self.one


class Wrong(SumSupplier):
    def stores(self) -> Any:
        return self.store


@pytest.mark.parametrize(
    ("supplier", "message"),
    [
        (lambda: SumSupplier("sums"), r"made <.*>: give the supplier as <lambda>\(\)"),
        (Same(), "returned the same Processor twice"),
        (Wrong("sums"), "stores is a list, as"),
    ],
)
def test_a_mistake_with_a_supplier_is_told_with_the_step(supplier: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=f"step 'sum'.*{message}"):
        App("mistakes").stream("in", **TEXT).process(supplier, name="sum")
