"""Test which types mypy infers for serdes; mypy checks this file, and running it proves little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from streams import App, Windowed, serdes
from streams.common.changes import Change
from streams.dsl.stream import Stream
from streams.serdes import Serde
from tests.unit.streams.serdes.test_registry import needs_extra


@dataclass
class Order:
    id: int


def test_the_type_checker_infers_what_a_serde_makes() -> None:
    assert_type(serdes.json(Order), Serde[Order])
    assert_type(serdes.windowed(serdes.string), Serde[Windowed[str]])
    assert_type(serdes.session_windowed(serdes.int64), Serde[Windowed[int]])
    assert_type(serdes.changed(serdes.string), Serde[Change[str]])
    assert_type(serdes.of(str.encode, bytes.decode), Serde[str])
    assert_type(serdes.string.for_topic("t", "key"), Serde[str])
    orders = App("a").stream("in", key=serdes.string, value=serdes.json(Order))
    assert_type(orders, Stream[str, Order])


@needs_extra
def test_so_it_does_with_a_registry() -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    there = "mock://typing"
    assert_type(serdes.avro(registry=there, schema=schema, type=Order), Serde[Order])
    assert_type(serdes.avro(registry=there, schema=schema), Serde[Any])
    json = {"title": "Order", "type": "object"}
    assert_type(serdes.json_schema(registry=there, schema=json, type=Order), Serde[Order])
