"""List how a Protobuf message can evolve, and what a reader of the other version gets.

Each case has the fields of two versions of a message and what is written as the first. `read` is
what the second reads, in Protobuf's text format; `refused` is part of the refusal. Then `read` is
what Protobuf's own libraries make of the message, which refuse nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Case(NamedTuple):
    """Describes a change of a message's fields, a message and what comes out of it."""

    name: str
    writer: str
    reader: str
    message: Mapping[str, Any]
    read: str
    refused: str = ""
    syntax: str = "proto3"
    reader_syntax: str = ""
    again: str | None = None
    """What the first version reads, or part of its refusal, where it is not what was written."""

    def files(self) -> tuple[str, str]:
        """Return the texts of the two files, each with a message Order."""
        syntaxes = (self.syntax, self.reader_syntax or self.syntax)
        bodies = (self.writer, self.reader)
        return tuple(  # type: ignore[return-value]
            f'syntax = "{syntax}"; package shop; message Order {{ {body} }}'
            for syntax, body in zip(syntaxes, bodies, strict=True)
        )


_SHADE_2 = "enum Shade { DARK = 0; LIGHT = 1; }"
_SHADE_3 = "enum Shade { DARK = 0; LIGHT = 1; PALE = 2; }"
_UNPACKED = "repeated int32 a = 1 [packed = false];"
_ONEOF = "oneof c { int32 a = 1; int32 b = 2; }"
_APART = "int32 a = 1; int32 b = 2;"
_BOTH = {"a": 1, "b": 2}

CASES = (
    Case("add a field", "int32 a = 1;", "int32 a = 1; string b = 2;", {"a": 7}, "a: 7"),
    Case("remove a field", _APART, "int32 a = 1;", _BOTH, "a: 1 2: 2"),
    Case("rename a field", "int32 a = 1;", "int32 b = 1;", {"a": 7}, "b: 7"),
    Case("int32 to int64", "int32 a = 1;", "int64 a = 1;", {"a": -(2**31)}, "a: -2147483648"),
    Case("int64 to int32, fits", "int64 a = 1;", "int32 a = 1;", {"a": -7}, "a: -7"),
    Case(
        *("int64 to int32, does not fit", "int64 a = 1;", "int32 a = 1;", {"a": 2**40 + 5}),
        "a: 5",
        r"value\.a: written as int: 1099511627781, and read as int: 5",
    ),
    Case(
        *("uint64 to int64", "uint64 a = 1;", "int64 a = 1;", {"a": 2**64 - 1}),
        "a: -1",
        "written as int: 18446744073709551615, and read as int: -1",
    ),
    Case("uint32 to int64", "uint32 a = 1;", "int64 a = 1;", {"a": 2**32 - 1}, "a: 4294967295"),
    Case(
        *("int32 to uint32", "int32 a = 1;", "uint32 a = 1;", {"a": -1}),
        "a: 4294967295",
        "written as int: -1",
    ),
    Case(
        *("sint32 to int32", "sint32 a = 1;", "int32 a = 1;", {"a": -3}),
        "a: 5",
        "written as int: -3, and read as int: 5",
    ),
    Case("sint32 to sint64", "sint32 a = 1;", "sint64 a = 1;", {"a": -3}, "a: -3"),
    Case(
        *("int64 to fixed64", "int64 a = 1;", "fixed64 a = 1;", {"a": 3}),
        "1: 3",
        "written as int: 3, and read as int: 0",
    ),
    Case(
        *("fixed64 to double", "fixed64 a = 1;", "double a = 1;", {"a": 2**62}),
        "a: 2.0",
        "written as int: 4611686018427387904, and read as float: 2.0",
    ),
    Case(
        *("float to double", "float a = 1;", "double a = 1;", {"a": 0.5}),
        "1: 1056964608",
        "written as float: 0.5, and read as float: 0.0",
    ),
    Case("bool to int32", "bool a = 1;", "int32 a = 1;", {"a": True}, "a: 1"),
    Case(
        *("int32 to bool", "int32 a = 1;", "bool a = 1;", {"a": 2}),
        "a: true",
        "written as int: 2, and read as bool: True",
    ),
    Case("string to bytes", "string a = 1;", "bytes a = 1;", {"a": "b"}, 'a: "b"'),
    Case("bytes to string", "bytes a = 1;", "string a = 1;", {"a": b"b"}, 'a: "b"'),
    Case(
        *("string to int64", "string a = 1;", "int64 a = 1;", {"a": "b"}),
        '1: "b"',
        "written as str: 'b', and read as int: 0",
    ),
    Case("string to int64, absent", "string a = 1;", "int64 a = 1;", {}, ""),
    Case("implicit to optional", "int32 a = 1;", "optional int32 a = 1;", {"a": 0}, ""),
    Case("optional to implicit", "optional int32 a = 1;", "int32 a = 1;", {"a": 0}, "", again=""),
    Case(
        *("one to repeated", "int32 a = 1;", "repeated int32 a = 1;", {"a": 7}, "a: 7"),
        again=r"written as list: \[7\], and read as int: 0",
    ),
    Case(
        *("repeated to one, packed", "repeated int32 a = 1;", "int32 a = 1;", {"a": [65]}),
        '1: "A"',
        r"written as list: \[65\], and read as int: 0",
    ),
    Case("repeated to one, one", _UNPACKED, "int32 a = 1;", {"a": [7]}, "a: 7"),
    Case(
        *("repeated to one, two", _UNPACKED, "int32 a = 1;", {"a": [7, 8]}),
        "a: 8",
        r"written as list: \[7, 8\], and read as int: 8",
    ),
    Case(
        *("packed to not", "repeated int32 a = 1;", _UNPACKED, {"a": [7, 8]}),
        "a: 7 a: 8",
    ),
    Case(
        *("an enumeration's new value", f"{_SHADE_3} Shade a = 1;", f"{_SHADE_2} Shade a = 1;"),
        {"a": 2},
        "a: 2",
    ),
    Case(
        *("its new value, closed", f"{_SHADE_3} optional Shade a = 1;"),
        f"{_SHADE_2} optional Shade a = 1;",
        {"a": 2},
        "1: 2",
        r"written as int: 2 \(enum Shade\), and read as nothing",
        "proto2",
    ),
    Case(
        *("new values of several, closed", f"{_SHADE_3} repeated Shade a = 1;"),
        f"{_SHADE_2} repeated Shade a = 1;",
        {"a": [2, 1]},
        "a: LIGHT 1: 2",
        r"written as list: \[2, 1\]",
        "proto2",
    ),
    Case(
        "int32 to an enumeration", "int32 a = 1;", f"{_SHADE_2} Shade a = 1;", {"a": 1}, "a: LIGHT"
    ),
    Case("an enumeration to int32", f"{_SHADE_2} Shade a = 1;", "int32 a = 1;", {"a": 1}, "a: 1"),
    Case(
        *("into a oneof, one", _APART, _ONEOF),
        {"b": 2},
        "b: 2",
    ),
    Case(
        *("into a oneof, both", _APART, _ONEOF),
        _BOTH,
        "b: 2",
        "value: a and b are set, and oneof c keeps one",
    ),
    Case(
        *("out of a oneof", _ONEOF, _APART),
        {"b": 2},
        "b: 2",
    ),
    Case("add to a oneof", "oneof c { int32 b = 2; }", _ONEOF, {"b": 2}, "b: 2"),
    Case("remove from a oneof", _ONEOF, "oneof c { int32 a = 1; }", {"b": 2}, "2: 2"),
    Case(
        "other default, absent",
        "optional int32 a = 1;",
        "optional int32 a = 1 [default = 5];",
        {},
        "",
        syntax="proto2",
    ),
    Case(
        *("a default for an implicit 0", "int32 a = 1;", "optional int32 a = 1 [default = 5];", {}),
        "",
        "written as int: 0, and read as its default, int: 5",
        "proto3",
        "proto2",
    ),
    Case(
        *("int64 in a part to int32", "message Line { int64 a = 1; } repeated Line lines = 1;"),
        "message Line { int32 a = 1; } repeated Line lines = 1;",
        {"lines": [{"a": 1}, {"a": 2**33}]},
        "lines { a: 1 } lines { }",
        r"value\.lines\[1\]\.a: written as int: 8589934592",
    ),
    Case(
        *("int64 in a part that holds itself", "int64 a = 1; Order next = 2;"),
        "int32 a = 1; Order next = 2;",
        {"next": {"next": {"a": 2**33 + 1}}},
        "next { next { a: 1 } }",
        r"value\.next\.next\.a: written as int: 8589934593",
    ),
    Case(
        *("int64 in a map's message", "message Line { int64 a = 1; } map<string, Line> by = 1;"),
        "message Line { int32 a = 1; } map<string, Line> by = 1;",
        {"by": {"k": {"a": 2**33 + 1}}},
        'by { key: "k" value { a: 1 } }',
        r"value\.by\['k'\]\.value\.a: written as int: 8589934593",
    ),
    Case(
        *("int64 of a map to int32", "map<string, int64> by = 1;", "map<string, int32> by = 1;"),
        {"by": {"k": 2**33 + 1}},
        'by { key: "k" value: 1 }',
        r"value\.by\['k'\]\.value: written as int: 8589934593",
    ),
    Case(
        *("a map's keys to int64", "map<int32, int32> by = 1;", "map<int64, int32> by = 1;"),
        {"by": {-1: 2}},
        "by { key: -1 value: 2 }",
    ),
    Case(
        *("a part's new field", "message Line { int32 a = 1; int32 b = 2; } Line line = 1;"),
        "message Line { int32 a = 1; } Line line = 1;",
        {"line": {"a": 1, "b": 2}},
        "line { a: 1 2: 2 }",
    ),
    Case(
        *("a part to several", "message Line { int32 b = 2; int32 a = 1; } Line line = 1;"),
        "message Line { int32 a = 1; } repeated Line line = 1;",
        {"line": {"a": 1, "b": 2}},
        "line { a: 1 2: 2 }",
    ),
)
