"""Describe Avro schemas as graphs of types, and write the schemas by which fastavro reads bytes.

A graph has each named type once, so that a record may contain itself. fastavro codes bytes by the
wire schema: the same bytes, with numbers where a logical type has a date, and with the branches of
a union as records of one field. A record has the bytes of its fields and nothing else, so that
fastavro then says which branch a value has, and is told which one it gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastavro.read import LOGICAL_READERS

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
RECORDS = ("record", "error")
NAMED = (*RECORDS, "enum", "fixed")
WIRE_FIELD = "v"
"""The field of the record that stands for a branch of a union."""
_NO_DEFAULT = object()
_LOGICAL_TYPES = frozenset(
    {
        ("int", "date"),
        ("int", "time-millis"),
        ("long", "time-micros"),
        ("long", "timestamp-millis"),
        ("long", "timestamp-micros"),
        ("long", "local-timestamp-millis"),
        ("long", "local-timestamp-micros"),
        ("string", "uuid"),
        ("bytes", "decimal"),
        ("fixed", "decimal"),
    }
)
"""The logical types that have a type in Python. Any other is what it is without: a number of
nanoseconds, the bytes of a duration."""
_OF_PYTHON = frozenset(f"{kind}-{logical_type}" for kind, logical_type in _LOGICAL_TYPES)


@dataclass(eq=False)
class AvroType:
    """Represents a type of a schema; `name` is the full name of a named type, or its kind.

    `logical_type` is one that Python has a type for, or empty. `items` is the type of an array's or
    map's elements. `underlying` is what a logical type that was added to fastavro has as bytes.
    `properties` are all attributes of the schema.
    """

    kind: str
    name: str
    logical_type: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    fields: list[AvroField] = field(default_factory=list)
    branches: list[AvroType] = field(default_factory=list)
    items: AvroType | None = None
    underlying: AvroType | None = None
    aliases: frozenset[str] = frozenset()

    @property
    def simple_name(self) -> str:
        """Return the name without its namespace."""
        return self.name.rpartition(".")[2]

    @property
    def is_added_logical_type(self) -> bool:
        """Return whether the values are those of a logical type that was added to fastavro.

        confluent-kafka adds "variant", and users add theirs.
        """
        return self.kind == "fastavro"


@dataclass(eq=False)
class AvroField:
    """Represents a field of a record; `default` is JSON's, if there is one."""

    name: str
    type: AvroType
    aliases: Sequence[str] = ()
    default: Any = _NO_DEFAULT

    @property
    def has_default(self) -> bool:
        return self.default is not _NO_DEFAULT


def read_schema(parsed: Any) -> AvroType:
    """Return the graph of a schema that fastavro has parsed, whose names are full names.

    Raises ValueError for a fixed type whose size is no number of bytes, which fastavro lets pass.
    """
    others = parsed.get("__named_schemas", {}) if isinstance(parsed, dict) else {}
    return _SchemaReader(others).read(parsed)


class _SchemaReader:
    """Reads a schema from its beginning to its end, and remembers its named types."""

    def __init__(self, others: Mapping[str, Any]) -> None:
        self._named: dict[str, AvroType] = {}
        self._others = others

    def read(self, schema: Any) -> AvroType:
        if isinstance(schema, list):
            return AvroType("union", "union", branches=[self.read(each) for each in schema])
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return AvroType(schema, schema)
            return self._named.get(schema) or self.read(self._others[schema])
        kind = schema["type"]
        if not isinstance(kind, str) or kind not in (*PRIMITIVES, *NAMED, "array", "map"):
            return self.read(kind)
        if kind in NAMED and schema["name"] in self._named:
            return self._named[schema["name"]]
        if kind == "fixed":
            _check_size(schema)
        name, logical_type = schema.get("name", kind), schema.get("logicalType", "")
        if not _has_python_type(schema):
            if f"{kind}-{logical_type}" in LOGICAL_READERS.keys() - _OF_PYTHON:
                kind = "fastavro"
            logical_type = ""
        found = AvroType(kind, name, logical_type, schema)
        if schema["type"] in NAMED:
            self._named[name] = found
            space = name.rpartition(".")[0]
            found.aliases = frozenset(
                alias if "." in alias or not space else f"{space}.{alias}"
                for alias in schema.get("aliases", ())
            )
        if kind == "fastavro":
            found.underlying = AvroType(schema["type"], name, "", schema)
        self._read_child_types(found.underlying or found)
        return found

    def _read_child_types(self, found: AvroType) -> None:
        if found.kind in RECORDS:
            found.fields = [self._read_field(each) for each in found.properties["fields"]]
        elif found.kind in ("array", "map"):
            found.items = self.read(
                found.properties["items" if found.kind == "array" else "values"]
            )

    def _read_field(self, schema: Mapping[str, Any]) -> AvroField:
        return AvroField(
            schema["name"],
            self.read(schema["type"]),
            schema.get("aliases", ()),
            schema.get("default", _NO_DEFAULT),
        )


def _check_size(schema: Mapping[str, Any]) -> None:
    """Raise ValueError unless a fixed type has a size: it becomes part of a function's source."""
    size = schema["size"]
    if type(size) is not int or size < 0:
        raise ValueError(
            f"the Avro schema of {schema['name']!r} has the size {size!r}: a fixed type needs a "
            "whole number of bytes there"
        )


def _has_python_type(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema is of a logical type that has a type in Python.

    A decimal without a precision, or with a scale beyond it, is just bytes, as in Java.
    """
    kind, logical_type = schema["type"], schema.get("logicalType")
    if logical_type != "decimal" or (kind, logical_type) not in _LOGICAL_TYPES:
        return (kind, logical_type) in _LOGICAL_TYPES
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    return isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision


def has_several_value_branches(union: AvroType) -> bool:
    """Return whether a union has several branches besides null, so that bytes tell which it is."""
    return sum(each.kind != "null" for each in union.branches) > 1


def name_wire_branch(union: AvroType, index: int) -> str:
    """Return the name of the record that stands for a branch of a union in the wire schema."""
    return f"U{id(union):x}_{index}"


def name_wire_type(schema: AvroType) -> str:
    """Return fastavro's name of a type in a union of the wire schema.

    A name without a namespace means the same wherever it stands.
    """
    return f"T{id(schema):x}" if schema.properties.get("type") in NAMED else schema.kind


def create_wire_schema(schema: AvroType) -> Any:
    """Return the schema by which fastavro reads and writes the bytes of a type, not parsed yet."""
    return _create_wire_schema(schema, set())


def _create_wire_schema(schema: AvroType, known: set[str]) -> Any:
    match schema.kind:
        case "union":
            if not has_several_value_branches(schema):
                return [_create_wire_schema(each, known) for each in schema.branches]
            return [
                _wrap_branch_and_add_name(schema, index, each, known)
                for index, each in enumerate(schema.branches)
            ]
        case "array":
            return {"type": "array", "items": _create_wire_schema(_require_items(schema), known)}
        case "map":
            return {"type": "map", "values": _create_wire_schema(_require_items(schema), known)}
        case "fastavro" if schema.properties["type"] not in NAMED:
            return dict(schema.properties)
        case kind if kind in PRIMITIVES:
            return kind
    name = name_wire_type(schema)
    if name in known:
        return name
    known.add(name)
    if schema.is_added_logical_type:
        return {**schema.properties, "name": name}
    found: dict[str, Any] = {"type": schema.kind, "name": name}
    if schema.kind == "enum":
        found["symbols"] = schema.properties["symbols"]
    elif schema.kind == "fixed":
        found["size"] = schema.properties["size"]
    else:
        found["fields"] = [
            {"name": each.name, "type": _create_wire_schema(each.type, known)}
            for each in schema.fields
        ]
    return found


def _wrap_branch_and_add_name(
    union: AvroType, branch_index: int, branch: AvroType, known_names: set[str]
) -> Any:
    if branch.kind == "null":
        return "null"
    name = name_wire_branch(union, branch_index)
    if name in known_names:
        return name
    known_names.add(name)
    inner = {"name": WIRE_FIELD, "type": _create_wire_schema(branch, known_names)}
    return {"type": "record", "name": name, "fields": [inner]}


def _require_items(schema: AvroType) -> AvroType:
    assert schema.items is not None, schema
    return schema.items


def contains_itself(schema: AvroType) -> bool:
    """Return whether a type contains itself, so that its values have any depth."""
    done: set[int] = set()

    def is_in_a_circle(each: AvroType, above: frozenset[int]) -> bool:
        if id(each) in above:
            return True
        if id(each) in done:
            return False
        done.add(id(each))
        return any(is_in_a_circle(part, above | {id(each)}) for part in iterate_child_types(each))

    return is_in_a_circle(schema, frozenset())


def iterate_child_types(schema: AvroType) -> Iterator[AvroType]:
    """Yield the types that a type is made of."""
    yield from schema.branches
    yield from (each.type for each in schema.fields)
    if schema.items is not None:
        yield schema.items
    if schema.underlying is not None:
        yield schema.underlying
