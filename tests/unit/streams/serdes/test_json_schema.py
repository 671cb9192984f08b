"""Test that JSON with a schema gives back what it was given, types included, or refuses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from hypothesis import example, given
from hypothesis import strategies as st

from state.shown_values import ShownValues, limit_shown_values
from streams import App, TopologyTestDriver, serdes
from streams.serdes import Serde
from tests import edge_values as edges
from tests.unit.properties import examples
from tests.unit.streams.serdes.schema_registry import SchemaRegistry

WEI = 123456789012345678901
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ANYTHING: dict[str, Any] = {"title": "Anything"}
TOTALS = {
    "title": "Totals",
    "type": "object",
    "properties": {"total": {"type": "number"}, "lines": {"type": "array"}},
}
FRAMED_BYTES = 5
"""The size of the 0 and the schema's id that a message begins with."""


def bind(schema: Any = ANYTHING, *, on: str = "mock://json-schema", **settings: Any) -> Serde[Any]:
    return serdes.json_schema(registry=on, schema=schema, **settings).for_topic("t", "value")


def check_is_given_back(serde: Serde[Any], value: Any, place: str) -> None:
    """Fail unless the serde gives back the value, or refuses it for what is at `place`."""
    refusal = None
    try:
        data = serde.serialize(value)
    except ValueError as error:
        refusal = str(error)
    if refusal is None:
        assert edges.are_same(serde.deserialize(data), value)
    else:
        assert refusal.startswith(f"NotExact: {place}")


ANY_JSON = bind()


@examples(300)
@given(edges.PLAIN)
@example({"wei": WEI, "b": -0.0, "c": None})
def test_what_json_has_comes_back_as_it_was(value: Any) -> None:
    if value is None:
        return  # a null record, which no serde is called for
    data = ANY_JSON.serialize(value)
    assert edges.are_same(ANY_JSON.deserialize(data), value)
    assert edges.are_same(json.loads(data[FRAMED_BYTES:]), value), "others read the same"


@examples(300)
@given(edges.nest(edges.SCALARS | edges.FOREIGN).filter(lambda value: value is not None))
def test_any_value_comes_back_as_it_was_or_is_refused(value: Any) -> None:
    check_is_given_back(ANY_JSON, value, "value")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"total": float("inf")}, r"value\.total: JSON has no inf"),
        ({"total": float("nan")}, r"value\.total: JSON has no nan"),
        ({"lines": [{"at": NOON}]}, r"value\.lines\[0\]\.at: JSON gives back no datetime.*type="),
        ({"lines": (1, 2)}, r"value\.lines: JSON gives back no tuple"),
        ({"lines": ["\ud800"]}, r"value\.lines\[0\]: UTF-8 has no lone surrogates"),
        ({1: 2}, "value: keys of JSON are str, got int: 1"),
        ({"total": "many"}, r"value\.total: 'many' is not of type 'number'"),
        ({"total": 2**1023}, r"value\.total: orjson reads integers of 1023 bits"),
    ],
)
def test_a_refusal_says_where_and_what(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"{message}.*; for t-value, got dict"):
        bind(TOTALS).serialize(value)


def test_a_refusal_of_a_large_value_is_short() -> None:
    with pytest.raises(ValueError, match="for t-value, got dict") as refused:
        bind({"title": "T", "additionalProperties": {"type": "integer"}}).serialize(
            {"text": "x" * 10_000_000}
        )
    assert len(str(refused.value)) < 1_000


def test_a_refusal_shows_no_more_of_a_value_than_the_application_allows() -> None:
    serde = bind({"title": "T", "properties": {"name": {"maxLength": 3}}})
    data = bind().serialize({"name": "Ada Lovelace"})
    with (
        limit_shown_values(ShownValues.TYPES),
        pytest.raises(ValueError, match=r"value\.name: <str of 12 characters> is too long; for t"),
    ):
        serde.deserialize(data)


def test_ten_megabytes_come_back() -> None:
    value = {"text": "ä" * 5_000_000, "numbers": list(range(2**63 - 5, 2**63 + 5))}
    assert ANY_JSON.deserialize(ANY_JSON.serialize(value)) == value


@pytest.mark.parametrize("depth", [250, 254, 255, 2000])
def test_deep_values_come_back_or_are_refused(depth: int) -> None:
    value: Any = {"x": WEI}
    for _ in range(depth - 1):
        value = [value]
    if depth <= 254:
        assert ANY_JSON.deserialize(ANY_JSON.serialize(value)) == value
    else:
        with pytest.raises(ValueError, match="nested more than 254 deep"):
            ANY_JSON.serialize(value)


def test_a_schema_that_refers_to_itself_refuses_what_is_nested_too_deeply() -> None:
    serde = bind({"title": "R", "type": "array", "items": {"$ref": "#"}})
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="nested more than 254 deep, or holds itself"):
        serde.serialize(value)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b'{"total": 1e400}', "infinity"),
        (b'{"total": NaN}', "unexpected character"),
        (b'{"total": "\\ud800"}', "surrogate"),
        (b'{"total": null}', r"value\.total: None is not of type 'number'"),
        (b"", "JSONDecodeError"),
    ],
)
def test_what_cannot_be_read_exactly_is_refused(written: bytes, message: str) -> None:
    serde = bind(TOTALS)
    with pytest.raises(ValueError, match=f"{message}.*; for t-value"):
        serde.deserialize(serde.serialize({})[:FRAMED_BYTES] + written)


@dataclass
class Leaf:
    size: int
    _unit: str = "cm"


@dataclass
class Declared:
    at: datetime
    number: UUID
    price: Decimal
    shade: edges.Shade
    leaves: list[Leaf]
    pair: tuple[Decimal, Leaf]
    by_number: dict[int, Leaf] = field(default_factory=dict)
    note: Any = None


DECLARED = st.builds(
    Declared,
    at=edges.datetimes,
    number=edges.uuids,
    price=edges.decimals,
    shade=st.sampled_from(edges.Shade),
    leaves=st.lists(st.builds(Leaf, edges.integers, edges.texts), max_size=2),
    pair=st.tuples(edges.decimals, st.builds(Leaf, edges.integers)),
    by_number=st.dictionaries(edges.integers, st.builds(Leaf, edges.integers), max_size=2),
    note=edges.PLAIN,
)
SCHEMA_OF_DECLARED = {
    "title": "Declared",
    "type": "object",
    "properties": {
        "at": {"type": "string", "format": "date-time"},
        "price": {"type": "string"},
        "leaves": {"type": "array", "items": {"required": ["size", "_unit"]}},
    },
    "required": ["at", "number", "price"],
}
OF_DECLARED = bind(SCHEMA_OF_DECLARED, type=Declared)


@examples(150)
@given(DECLARED)
def test_declared_types_come_back_as_they_were(value: Declared) -> None:
    assert edges.are_same(OF_DECLARED.deserialize(OF_DECLARED.serialize(value)), value)


@examples(150)
@given(st.data(), st.sampled_from(sorted(Declared.__dataclass_fields__)))
def test_a_field_of_another_type_comes_back_or_is_refused(data: st.DataObject, name: str) -> None:
    value = data.draw(DECLARED)
    setattr(value, name, data.draw(edges.SCALARS | edges.FOREIGN))
    check_is_given_back(OF_DECLARED, value, f"value.{name}")


def test_a_type_need_not_be_a_dataclass() -> None:
    serde = bind({"type": "array"}, type=list[Leaf])
    assert serde.name == "json_schema(list[Leaf])"
    assert serde.deserialize(serde.serialize([Leaf(1)])) == [Leaf(1)]
    with pytest.raises(TypeError, match="got <class 'int'>"):
        bind(type=int)


def test_what_functions_return_is_checked_too() -> None:
    serde = bind(to_dict=lambda pair: {"id": pair[0], "at": pair[1]})
    with pytest.raises(ValueError, match=r"value\.at: JSON gives back no datetime"):
        serde.serialize((1, NOON))


def test_an_aggregate_that_begins_with_infinity_is_refused_when_it_is_made() -> None:
    smallest = serdes.json_schema(registry="mock://infinity", schema=TOTALS)
    app = App("prices")
    prices = app.stream("prices", key=serdes.string, value=smallest)
    prices.group_by_key().aggregate(
        lambda: {"total": float("inf")}, lambda *_: {"total": float("inf")}, value=smallest
    )
    with (
        TopologyTestDriver(app) as driver,
        pytest.raises(Exception, match=r"value\.total: JSON has no inf"),
    ):
        driver.topic("prices").pipe("k", {"total": 1.0})


def test_a_schema_may_refer_to_others(registry: SchemaRegistry) -> None:
    address = {"type": "object", "properties": {"city": {"type": "string"}}}
    registry.post(["subjects", "addresses", "versions"], {"schema": json.dumps(address)})
    order = {"title": "Order", "properties": {"to": {"$ref": "address.json"}}}
    references = [SchemaReference("address.json", "addresses", 1)]
    serde = bind(Schema(json.dumps(order), "JSON", references), on=registry.url)
    value = {"to": {"city": "Bern"}}
    assert serde.deserialize(serde.serialize(value)) == value
    with pytest.raises(ValueError, match=r"value\.to\.city: 7 is not of type 'string'"):
        serde.serialize({"to": {"city": 7}})


V1 = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["id"],
}


def change(**changed: Any) -> dict[str, Any]:
    """Return the first schema with other properties; None takes one away."""
    properties = {**V1["properties"], **changed.pop("properties", {})}  # type: ignore[dict-item]
    kept = {name: each for name, each in properties.items() if each is not None}
    return {**V1, **changed, "properties": kept}


@dataclass
class WithoutNote:
    id: int


@dataclass
class WithCount:
    id: int
    note: str = ""
    count: int = 1


@dataclass
class Renamed:
    id: int
    remark: str = ""


NUMBER = change(properties={"id": {"type": "number"}})
OLD = {"id": 1, "note": "a"}
SHAPES = {"oneOf": [{"required": ["circle"]}, {"required": ["square"]}]}


@pytest.mark.parametrize(
    ("reader", "type_", "written", "read"),
    [
        pytest.param(change(properties={"count": {"default": 1}}), None, OLD, OLD, id="add"),
        pytest.param(change(), WithCount, OLD, WithCount(1, "a", 1), id="add to a dataclass"),
        pytest.param(change(required=["id", "count"]), None, OLD, "value: 'count'", id="require"),
        pytest.param(change(properties={"note": None}), None, OLD, OLD, id="remove"),
        pytest.param(
            change(properties={"note": None}, additionalProperties=False),
            None,
            OLD,
            r"value: Additional properties are not allowed \('note'",
            id="remove and close",
        ),
        pytest.param(change(), WithoutNote, OLD, WithoutNote(1), id="remove from a dataclass"),
        pytest.param(
            change(properties={"note": None, "remark": {}}, required=["id", "remark"]),
            Renamed,
            OLD,
            "value: 'remark' is a required property",
            id="rename",
        ),
        pytest.param(
            change(properties={"id": {"type": "number"}}),
            None,
            {"id": WEI},
            {"id": WEI},
            id="widen",
        ),
        pytest.param(
            change(properties={"id": {"type": "number"}}), None, {"id": 1}, {"id": 1}, id="no float"
        ),
        pytest.param(
            change(properties={"id": {"type": "string"}}), None, OLD, r"value\.id: 1 is", id="type"
        ),
        pytest.param(
            change(properties={"note": {"enum": ["b"]}}), None, OLD, r"value\.note: 'a'", id="enum"
        ),
        pytest.param(change(**SHAPES), None, OLD, "value: ", id="oneOf: none"),
        pytest.param(
            change(**SHAPES), None, {"id": 1, "circle": 1}, {"id": 1, "circle": 1}, id="oneOf: one"
        ),
        pytest.param(
            change(**SHAPES), None, {"id": 1, "circle": 1, "square": 1}, "value: ", id="oneOf: two"
        ),
    ],
)
def test_an_older_message_is_read_by_the_newer_schema_or_refused(
    reader: dict[str, Any], type_: Any, written: Any, read: Any
) -> None:
    data = bind(V1).serialize(written)
    newer = bind(reader, type=type_)
    if isinstance(read, str):
        with pytest.raises(ValueError, match=f"{read}.*; for t-value"):
            newer.deserialize(data)
    else:
        assert edges.are_same(newer.deserialize(data), read)


def test_fields_that_the_dataclass_has_not_are_left_out_or_refused_or_kept() -> None:
    data = bind(V1).serialize(OLD)
    ignoring, refusing, keeping = (
        bind(V1, type=WithoutNote, unknown=each) for each in ("ignore", "refuse", "keep")
    )
    assert ignoring.deserialize(data) == WithoutNote(1)
    with pytest.raises(ValueError, match=r"note: WithoutNote has no such field; for t-value"):
        refusing.deserialize(data)
    kept = keeping.deserialize(data)
    assert kept == WithoutNote(1)
    assert keeping.serialize(kept) == data
    with pytest.raises(ValueError, match="got 'drop'"):
        bind(V1, type=WithoutNote, unknown="drop")


def test_without_a_schema_a_message_is_validated_by_the_one_that_wrote_it() -> None:
    data = bind(V1).serialize(OLD)
    reader = bind(None)
    assert reader.deserialize(data) == OLD
    with pytest.raises(ValueError, match=r"value\.id: 'x' is not of type 'integer'"):
        reader.deserialize(data[:FRAMED_BYTES] + b'{"id": "x"}')


@pytest.mark.parametrize("change_bytes", [lambda data: b"", lambda data: data[:3], lambda _: b"{}"])
def test_bytes_of_no_schema_are_refused(change_bytes: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ValueError, match="; for t-value"):
        ANY_JSON.deserialize(change_bytes(ANY_JSON.serialize({})))
