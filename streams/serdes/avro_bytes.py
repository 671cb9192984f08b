"""Check that bytes are a message of an Avro schema before fastavro reads them.

fastavro reads what no writer writes: symbol -1 of an enumeration as its last one, branch -1 of a
union, any byte as a boolean, an int of 64 bits, and a few bytes as 2^60 nulls, until the memory is
full. Avro for Java refuses most of that. So a function is composed for each schema that walks
through the bytes without reading more of them than lengths and numbers. It is composed as source,
a function for each record, array and map, since each message pays for it: a seventh of the time in
which the serde reads it (`python -m benchmarks.avro_reading`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streams.serdes.avro_faults import DEPTH_MAX, find_fault, find_smallest_byte_count
from streams.serdes.avro_mismatch import AvroMismatch
from streams.serdes.avro_schema import RECORDS, AvroType, iterate_child_types
from streams.serdes.avro_varints import (
    BadBytes,
    read_block,
    read_choice,
    skip_int,
    skip_long,
    skip_sized,
)

_NAMES: dict[str, Any] = {
    "BadBytes": BadBytes,
    "read_block": read_block,
    "read_choice": read_choice,
    "skip_int": skip_int,
    "skip_long": skip_long,
    "skip_sized": skip_sized,
}
_SIZES = {"float": 4, "double": 8}


def create_message_check(schema: AvroType) -> Callable[[bytes], None]:
    """Return the function that raises AvroMismatch for bytes that are no message of a schema.

    Texts that are no UTF-8 are left to fastavro, which reads them.
    """
    if has_arrays_of_empty_elements(schema):
        return lambda data: _raise_if_faulty(schema, data)
    skip = _SourceComposer().compose_function(schema)

    def check_message(data: bytes) -> None:
        try:
            if skip(data, 0, 0) == len(data):
                return
        except (IndexError, BadBytes, RecursionError):
            pass
        _raise_if_faulty(schema, data)
        raise AvroMismatch(f"its bytes are no {schema.name}")

    return check_message


def has_arrays_of_empty_elements(schema: AvroType) -> bool:
    """Return whether a type has arrays of elements that have no bytes, as nulls."""
    seen, waiting = set[int](), [schema]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            if each.kind == "array" and each.items and not find_smallest_byte_count(each.items):
                return True
            waiting.extend(iterate_child_types(each))
    return False


def _raise_if_faulty(schema: AvroType, data: bytes) -> None:
    fault = find_fault(schema, data)
    if fault is not None:
        raise fault


class _SourceComposer:
    """Composes a function for each record, array and map: skip_N(data, at, depth) -> end.

    A function raises IndexError or BadBytes for what is not there. It may go beyond the end with
    values of a fixed size; then the next one, or the comparison with the length, finds out.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._source: list[str] = []

    def compose_function(self, schema: AvroType) -> Callable[[bytes, int, int], int]:
        body = [*self._compose_skip_statements(schema), "return at"]
        self._add_function("skip", body)
        names = dict(_NAMES)
        # Of the schema only numbers are in it: `read_schema` has checked that they are.
        exec("\n".join(self._source), names)  # nosec B102
        found: Callable[[bytes, int, int], int] = names["skip"]
        return found

    def _add_function(self, name: str, body: list[str]) -> None:
        self._source += [f"def {name}(data, at, depth):", *_indent_lines(body)]

    def _compose_skip_statements(self, schema: AvroType) -> Iterator[str]:
        """Yield the statements that move `at` behind a value."""
        match schema.kind:
            case "null":
                yield "pass"
            case "boolean":
                yield "if data[at] > 1: raise BadBytes"
                yield "at += 1"
            case "int" | "long":
                yield f"at = at + 1 if data[at] < 128 else skip_{schema.kind}(data, at)"
            case "float" | "double":
                yield f"at += {_SIZES[schema.kind]}"
            case "fixed":
                yield f"at += {schema.properties['size']}"
            case "string" | "bytes":
                yield "n = data[at]"
                yield "at = skip_sized(data, at) if n & 129 else at + 1 + (n >> 1)"
            case "enum":
                yield from _compose_choice_read(len(schema.properties["symbols"]), "symbols")
            case "union":
                yield from self._compose_union_skip(schema)
            case "fastavro":
                assert schema.underlying is not None
                yield from self._compose_skip_statements(schema.underlying)
            case _:
                yield f"at = skip_{self._number_skip_function(schema)}(data, at, depth + 1)"

    def _compose_union_skip(self, union: AvroType) -> Iterator[str]:
        yield from _compose_choice_read(len(union.branches), "branches")
        for index, each in enumerate(union.branches):
            yield f"{'el' if index else ''}if n == {2 * index}:"
            yield from _indent_lines(self._compose_skip_statements(each))

    def _number_skip_function(self, schema: AvroType) -> int:
        """Return the number of the function for a record, array or map, and add it if needed."""
        if id(schema) in self._numbers:
            return self._numbers[id(schema)]
        number = self._numbers[id(schema)] = len(self._numbers)
        if schema.kind in RECORDS:
            body = [f"if depth > {DEPTH_MAX}: raise BadBytes"]
            for each in schema.fields:
                body += self._compose_skip_statements(each.type)
            body.append("return at")
        else:
            body = self._compose_blocks_skip(schema)
        self._add_function(f"skip_{number}", body)
        return number

    def _compose_blocks_skip(self, schema: AvroType) -> list[str]:
        assert schema.items is not None
        key = ["n = data[at]", "at = skip_sized(data, at) if n & 129 else at + 1 + (n >> 1)"]
        items = [
            *(key if schema.kind == "map" else ()),
            *self._compose_skip_statements(schema.items),
        ]
        size_min = find_smallest_byte_count(schema.items) + (schema.kind == "map")
        return [
            "while True:",
            "    n, at = read_block(data, at) if data[at] & 129 else (data[at] >> 1, at + 1)",
            "    if not n: return at",
            f"    if n * {size_min} > len(data) - at: raise BadBytes",
            "    for _ in range(n):",
            *_indent_lines(_indent_lines(items)),
        ]


def _compose_choice_read(count: int, what: str) -> Iterator[str]:
    """Yield Python lines that read an enum's or a union branch's index, doubled, into `n`."""
    yield "n = data[at]"
    yield "at += 1"
    yield f"if n & 129 or n >= {2 * count}: n, at = read_choice(data, at - 1, {count}, '{what}')"


def _indent_lines(lines: Any) -> list[str]:
    return [f"    {line}" for line in lines]
