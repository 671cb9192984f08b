"""Test that schemas are compared as the serdes of a registry read one another's messages."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from streams import App, serdes
from streams.serdes import Serde
from streams.topology.compare_versions import compare_topologies
from streams.topology.description import (
    describe_topology,
    description_from_json,
    description_to_json,
)
from streams.topology.type_compatibility import compare_types, have_equal_bytes
from tests import brokers
from tests.proto_files import create_classes

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("fastavro") is None and not brokers.in_ci(),
    reason="pip install 'millrace-streams[registry]'",
)
NUMBERS: Iterator[int] = itertools.count()


def compare(old: Serde[Any], new: Serde[Any]) -> str:
    assert old.message_type is not None
    assert new.message_type is not None
    return str(compare_types(old.message_type, new.message_type))


def is_read(writer: Serde[Any], reader: Serde[Any], value: Any) -> bool:
    """Return whether a reader takes what a writer has written."""
    topic = f"t-{next(NUMBERS)}"
    data = writer.for_topic(topic, "value").serialize(value)
    try:
        reader.for_topic(topic, "value").deserialize(data)
    except ValueError:
        return False
    return True


def record(name: str = "Total", **fields: Any) -> dict[str, Any]:
    """Return an Avro schema; a field with a default is given as a pair."""
    found = [
        {"name": each, "type": type_[0], "default": type_[1]}
        if isinstance(type_, tuple)
        else {"name": each, "type": type_}
        for each, type_ in fields.items()
    ]
    return {"type": "record", "name": name, "fields": found}


def symbols(*names: str) -> dict[str, Any]:
    return {"type": "enum", "name": "Shade", "symbols": names}


LOOP = ["null", "Total"]
AVRO_CASES: list[tuple[Any, Any, Any, Any, str]] = [
    (record(a="int"), record(a="int", b=("int", 0)), {"a": 1}, {"a": 1, "b": 2}, "yes, without b"),
    (record(a="int"), record(a="int", b="int"), {"a": 1}, {"a": 1, "b": 2}, "no, without b"),
    (record(a="int"), record(a="long"), {"a": 1}, {"a": 2**40}, "yes, no"),
    (record(a="string"), record(a="bytes"), {"a": "x"}, {"a": b"x"}, "yes, yes"),
    (record(a="int"), record(a=["null", "int"]), {"a": 1}, {"a": None}, "yes, no"),
    (record(a="int"), record(a="string"), {"a": 1}, {"a": "x"}, "no, no"),
    (
        record(a=symbols("A")),
        record(a=symbols("A", "B")),
        {"a": "A"},
        {"a": "B"},
        "yes, no",
    ),
    (
        record(a={"type": "array", "items": "int"}),
        record(a={"type": "array", "items": "double"}),
        {"a": [1]},
        {"a": [1.5]},
        "yes, no",
    ),
    (
        record(a="int", next=LOOP),
        record(a="long", next=LOOP),
        {"a": 1, "next": {"a": 2, "next": None}},
        {"a": 1, "next": {"a": 2, "next": None}},
        "yes, no",
    ),
    (
        {**record(a="int"), "name": "Sum"},
        {**record(a="int"), "aliases": ["Sum"]},
        {"a": 1},
        None,
        "yes, no",
    ),
]


@pytest.mark.parametrize(("old", "new", "written", "written_now", "directions"), AVRO_CASES)
def test_avro_schemas_are_compared_as_messages_are_read(
    old: Any, new: Any, written: Any, written_now: Any, directions: str
) -> None:
    one, other = (serdes.avro(registry="mock://compare", schema=each) for each in (old, new))
    check_directions(one, other, written, written_now, directions)


def check_directions(
    one: Serde[Any], other: Serde[Any], written: Any, written_now: Any, directions: str
) -> None:
    backward, forward = directions.split(", ")
    assert compare(one, other) == f"compatible backward {backward}, forward {forward}"
    if written is not None:
        assert is_read(one, other, written) is (backward != "no")
    if written_now is not None and forward != "no":
        assert is_read(other, one, written_now)


def properties(*required: str, closed: bool = False, **types: Any) -> dict[str, Any]:
    """Return a JSON Schema of an object."""
    return {
        "title": "Total",
        "type": "object",
        "properties": {name: {"type": each} for name, each in types.items()},
        "required": list(required),
        **({"additionalProperties": False} if closed else {}),
    }


OF_A_AND_B: Any = {"a": "integer", "b": "integer"}
JSON_CASES: list[tuple[Any, Any, Any, Any, str]] = [
    (
        properties("a", a="integer"),
        properties("a", **OF_A_AND_B),
        {"a": 1},
        {"a": 1, "b": 2},
        "yes, yes",
    ),
    (
        properties("a", a="integer"),
        properties("a", "b", **OF_A_AND_B),
        {"a": 1},
        {"a": 1, "b": 2},
        "no, yes",
    ),
    (
        properties("a", a="integer", closed=True),
        properties("a", closed=True, **OF_A_AND_B),
        {"a": 1},
        {"a": 1, "b": 2},
        "yes, no",
    ),
    (properties("a", a="integer"), properties("a", a="number"), {"a": 1}, {"a": 1.5}, "yes, no"),
    (
        properties("a", a="integer"),
        properties("a", a=["integer", "null"]),
        {"a": 1},
        {"a": None},
        "yes, no",
    ),
    (properties("a", **OF_A_AND_B), properties("b", **OF_A_AND_B), {"a": 1}, {"b": 1}, "no, no"),
    (
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}},
        {"a": "y"},
        {"a": "x"},
        "no, yes",
    ),
]


@pytest.mark.parametrize(("old", "new", "written", "written_now", "directions"), JSON_CASES)
def test_json_schemas_are_compared_as_messages_are_read(
    old: Any, new: Any, written: Any, written_now: Any, directions: str
) -> None:
    one, other = (serdes.json_schema(registry="mock://compare", schema=each) for each in (old, new))
    check_directions(one, other, written, written_now, directions)


PROTOBUF_CASES = [
    ("int32 a = 1;", "int32 a = 1; int32 b = 2;", "yes, yes"),
    ("int32 a = 1;", "int32 other_name = 1;", "yes, yes"),
    ("int32 a = 1;", "int64 a = 1;", "yes, no"),
    ("int32 a = 1;", "string a = 1;", "no, no"),
    ("string a = 1;", "repeated string a = 1;", "no, no"),
    ("map<string, int32> a = 1;", "map<string, int64> a = 1;", "yes, no"),
    ("Total a = 1; int32 b = 2;", "Total a = 1; int64 b = 2;", "yes, no"),
]


@pytest.mark.parametrize(("old", "new", "directions"), PROTOBUF_CASES)
def test_protobuf_messages_are_compared_by_the_numbers_of_their_fields(
    old: str, new: str, directions: str
) -> None:
    one, other = (
        serdes.protobuf(
            registry="mock://compare",
            message_type=create_classes(f'syntax = "proto3"; message Total {{ {body} }}')["Total"],
        )
        for body in (old, new)
    )
    check_directions(one, other, None, None, directions)


def test_keys_of_another_schema_have_other_bytes() -> None:
    one, other = (
        serdes.avro(registry="mock://compare", schema={**record(a="int"), "doc": doc})
        for doc in ("a", "b")
    )
    assert one.message_type is not None
    assert other.message_type is not None
    assert str(compare_types(one.message_type, other.message_type)).endswith("forward yes")
    assert not have_equal_bytes(one.message_type, other.message_type)


def test_plan_compares_schemas_of_stores() -> None:
    found = []
    for fields in ({"a": "int"}, {"a": "int", "b": "int"}):
        app = App("a")
        serde = serdes.avro(registry="mock://compare", schema=record(**fields))
        stream = app.stream("in", key=serdes.string, value=serde)
        stream.group_by_key().reduce(lambda old, new: new, store="last")
        described = describe_topology(app.topology())
        found.append(description_from_json(description_to_json(described), "saved"))
    old, new = found
    plan = compare_topologies(old, new)
    assert plan.loses_state
    assert any("b: Total needs it, and no message has it" in each for each in plan.conflicts)
