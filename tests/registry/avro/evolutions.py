"""List changes of Avro schemas, with messages of the older ones.

A change stands in a field of a record, as most do. Values are as fastavro takes them: those of
unions are pairs with the names of their branches; logical types are numbers, bytes and texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Evolution(NamedTuple):
    """Holds the schemas of a writer and a reader, and a value that was written."""

    name: str
    writer: Any
    reader: Any
    value: Any


def record(*fields: Any, name: str = "shop.Order", **more: Any) -> dict[str, Any]:
    """Return a record; a field is its name and its type, and may have attributes."""
    found = [
        {"name": each[0], "type": each[1], **(each[2] if len(each) > 2 else {})} for each in fields
    ]
    return {"type": "record", "name": name, "fields": found, **more}


def enum(*symbols: str, name: str = "shop.Shade", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "shop.Hash", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


CREATED = record(("id", "string"), name="shop.Created")
DELETED = record(("id", "string"), name="shop.Deleted")
MOVED = record(("to", "long"), name="shop.Moved")
DECIMAL = logical("bytes", "decimal", precision=400, scale=2)

TYPES: list[tuple[Any, list[Any]]] = [
    ("null", [None]),
    ("boolean", [True]),
    ("int", [0, 2**31 - 1, 2**24 + 1]),
    ("long", [1, 2**53 + 1, -(2**63)]),
    ("float", [1.5, -0.0, float("inf")]),
    ("double", [0.1, float("-inf")]),
    ("string", ["", "tea", "\x00€"]),
    ("bytes", [b"", b"tea"]),
    ({"type": "array", "items": "int"}, [[], [1]]),
    ({"type": "array", "items": "string"}, [[], ["a"]]),
    ({"type": "map", "values": "int"}, [{}, {"a": 1}]),
    ({"type": "map", "values": "double"}, [{"a": 0.5}]),
    (enum("A", "B"), ["A", "B"]),
    (enum("B"), ["B"]),
    (enum("B", "C", default="C"), ["C"]),
    (enum("A", "B", name="shop.Colour"), ["A"]),
    (enum("A", "B", name="shop.Colour", aliases=["Shade"]), ["A"]),
    (enum("A", "B", name="other.Shade"), ["A"]),
    (fixed(2), [b"ab"]),
    (fixed(3), [b"abc"]),
    (fixed(2, name="shop.Digest", aliases=["shop.Hash"]), [b"ab"]),
    (fixed(2, name="shop.Digest"), [b"ab"]),
    (logical("int", "date"), [0, 20_000]),
    (logical("int", "time-millis"), [1_000]),
    (logical("long", "timestamp-millis"), [0, 253_402_300_800_000]),
    (logical("long", "timestamp-micros"), [1]),
    (logical("long", "timestamp-nanos"), [1]),
    (logical("string", "uuid"), ["00000000-0000-0000-0000-000000000001"]),
    (DECIMAL, [b"\x01", b"\xff\x00"]),
    (["null", "int"], [("null", None), ("int", 5)]),
    (["int", "null"], [("null", None), ("int", 5)]),
    (["null", "long"], [("long", 5)]),
    (["int", "long"], [("int", 5), ("long", 5), ("long", 2**40)]),
    (["long", "int"], [("int", 5), ("long", 5)]),
    (["float", "double"], [("float", 1.5), ("double", 1.5)]),
    (["double", "float"], [("float", 1.5)]),
    (["null", "string", "bytes"], [("string", "a"), ("bytes", b"a")]),
    (["string", enum("A", "B")], [("string", "A"), ("shop.Shade", "A")]),
    (["int", "string"], [("int", 1), ("string", "a")]),
    (["double", "bytes"], [("double", 1.0), ("bytes", b"a")]),
    (["null", CREATED], [("null", None), ("shop.Created", {"id": "1"})]),
    ([CREATED, DELETED], [("shop.Created", {"id": "1"}), ("shop.Deleted", {"id": "1"})]),
    ([DELETED, CREATED], [("shop.Created", {"id": "1"}), ("shop.Deleted", {"id": "1"})]),
    ([CREATED, MOVED], [("shop.Created", {"id": "1"}), ("shop.Moved", {"to": 1})]),
    (CREATED, [{"id": "1"}]),
    (DELETED, [{"id": "1"}]),
    (MOVED, [{"to": 1}]),
    (record(("id", "string"), ("n", "int"), name="shop.Created"), [{"id": "1", "n": 2}]),
    (record(("id", ["null", "string"]), name="shop.Created"), [{"id": ("string", "1")}]),
    (record(("to", "double"), name="shop.Moved"), [{"to": 1.0}]),
    (record(("id", "string"), name="shop.Made", aliases=["Created"]), [{"id": "1"}]),
    (record(("id", "string"), name="other.Created"), [{"id": "1"}]),
    (record(("key", "string", {"aliases": ["id"]}), name="shop.Created"), [{"key": "1"}]),
]
"""Types, each of which is read as each other one."""

DEFAULTS: list[tuple[Any, Any]] = [
    ("null", None),
    ("boolean", True),
    ("int", 5),
    ("long", 2**40),
    ("float", 0.1),
    ("float", 1),
    ("double", 0.1),
    ("double", 1),
    ("string", "tea"),
    ("bytes", "\u00ff\u0000"),
    (fixed(2), "\u00ff\u0001"),
    (enum("A", "B"), "B"),
    ({"type": "array", "items": ["null", "int"]}, []),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "bytes"}, {"a": "\u00e9"}),
    (["null", "string"], None),
    (["string", "null"], "tea"),
    (["null", "string"], "tea"),
    ([CREATED, DELETED], {"id": "1"}),
    (CREATED, {"id": "1"}),
    (record(("a", "int", {"default": 3}), ("b", "string"), name="shop.Part"), {"b": "x"}),
    (logical("long", "timestamp-millis"), 5),
    (logical("int", "date"), 5),
    (DECIMAL, "\u0001"),
]
"""Types of fields that the reader has added, with defaults that they may have."""


def list_pairs() -> Iterator[Evolution]:
    """Yield each type with each other one that its messages are read as."""
    for writer, values in TYPES:
        for reader, _ in TYPES:
            for value in values:
                yield Evolution(
                    f"{writer} as {reader}",
                    record(("f", writer)),
                    record(("f", reader)),
                    {"f": value},
                )


def list_defaults() -> Iterator[Evolution]:
    """Yield fields that were added, with a default and without one."""
    before = record(("a", "int"))
    for added, default in DEFAULTS:
        reader = record(("b", added, {"default": default}), ("a", "int"))
        yield Evolution(f"{added} with default {default!r}", before, reader, {"a": 1})
        yield Evolution(f"{added} added", before, record(("a", "int"), ("b", added)), {"a": 1})


BEYOND_JAVA: list[tuple[Any, Any, Any]] = [
    (["int", "long"], 2**40, 2**40),  # Java cuts it to the int 0
    (["null", MOVED, CREATED], {"id": "1"}, ("shop.Created", {"id": "1"})),  # Java takes Moved
]
"""Types of fields that the reader has added, with defaults that Java does not give, and values."""

NODE = record(("v", "int"), ("next", ["null", "shop.Order"]))


def list_others() -> Iterator[Evolution]:
    """Yield changes of records, of what is nested in them, and of whole messages."""
    both = {"a": 1, "b": "x"}
    before = record(("a", "int"), ("b", "string"))
    changes = {
        "reordered": record(("b", "string"), ("a", "int")),
        "removed": record(("a", "int")),
        "all removed": record(),
        "renamed": record(("a", "int"), ("c", "string", {"aliases": ["b"]})),
        "renamed and promoted": record(("c", "double", {"aliases": ["x", "a"]})),
        "renamed without an alias": record(("a", "int"), ("c", "string")),
        "made optional": record(("a", ["null", "int"]), ("b", ["string", "null"])),
        "another name": record(("a", "int"), ("b", "string"), name="shop.Purchase"),
        "an alias of the record": record(("a", "long"), name="shop.Bill", aliases=["Order"]),
        "of another type": record(("a", "string"), ("b", "string")),
    }
    for name, changed in changes.items():
        yield Evolution(name, before, changed, both)
    deeper = record(("next", ["null", "shop.Order"]), ("v", "long"), ("w", "int", {"default": 7}))
    value = {"v": 1, "next": ("shop.Order", {"v": 2, "next": ("null", None)})}
    yield Evolution("a record that contains itself", NODE, deeper, value)
    whole: list[tuple[Any, Any, Any]] = [
        ("int", "long", 5),
        (["null", "int"], "int", ("null", None)),
        ([CREATED, DELETED], [CREATED, DELETED, MOVED], ("shop.Deleted", {"id": "1"})),
        ([CREATED, DELETED], [CREATED], ("shop.Created", {"id": "1"})),
        ({"type": "array", "items": [CREATED, MOVED]}, {"type": "array", "items": [MOVED]}, []),
        ({"type": "map", "values": CREATED}, {"type": "map", "values": [MOVED, CREATED]}, {}),
        (
            {"type": "map", "values": CREATED},
            {"type": "map", "values": [MOVED, CREATED]},
            {"a": {"id": "1"}},
        ),
        (
            {"type": "array", "items": [CREATED, MOVED]},
            {"type": "array", "items": [MOVED, CREATED, "null"]},
            [("shop.Moved", {"to": 1}), ("shop.Created", {"id": "1"})],
        ),
    ]
    for writer, reader, each in whole:
        yield Evolution(f"{writer} as {reader}", writer, reader, each)


def list_all() -> list[Evolution]:
    return [*list_pairs(), *list_defaults(), *list_others()]
