"""Find what is wrong with bytes that are no message of an Avro schema, and where.

This walks through the bytes part by part, and knows the place that it is at. Messages are only
walked through if `avro_bytes` has refused them, and where elements of no bytes are to be counted.
"""

from __future__ import annotations

from streams.serdes.avro_mismatch import AvroMismatch
from streams.serdes.avro_schema import RECORDS, AvroType
from streams.serdes.avro_varints import (
    BadBytes,
    read_block,
    read_choice,
    skip_int,
    skip_long,
    skip_sized,
)

DEPTH_MAX = 200
"""How deep records, arrays and maps are in each other: whether a message is read must not depend on
how much of Python's stack is left, and fastavro's reader in C ends the process at some depth."""
EMPTY_ELEMENTS_MAX = 1_000_000
"""How many elements without bytes, as nulls, a message may have: a few bytes would stand for any
number of them."""
_FIXED_SIZES = {"null": 0, "float": 4, "double": 8}


def find_fault(schema: AvroType, data: bytes) -> AvroMismatch | None:
    """Return the first fault in the bytes of a message, with its place; None if there is none."""
    return _FaultFinder(data).find_fault(schema)


class _FaultFinder:
    """Walks through the bytes of one message; the errors that it raises get their place above."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._empty_elements = 0

    def find_fault(self, schema: AvroType) -> AvroMismatch | None:
        try:
            self._read_value_or_raise_fault(schema, 0)
        except AvroMismatch as misfit:
            return misfit
        except RecursionError:
            return AvroMismatch("it is nested too deeply for Python")
        if left := len(self._data) - self._at:
            return AvroMismatch(f"{left} bytes are left after a message of {schema.name}")
        return None

    def _read_value_or_raise_fault(self, schema: AvroType, depth: int) -> None:
        """Walk through a value, and raise AvroMismatch with its place below this value."""
        try:
            match schema.kind:
                case "union":
                    self._read_union_or_raise_fault(schema, depth)
                case "array" | "map":
                    self._read_blocks_or_raise_fault(schema, depth)
                case kind if kind in RECORDS:
                    self._read_record_or_raise_fault(schema, depth)
                case "fastavro":
                    assert schema.underlying is not None
                    self._read_value_or_raise_fault(schema.underlying, depth)
                case _:
                    self._read_scalar_or_raise_fault(schema)
        except IndexError:
            raise AvroMismatch(f"its bytes end within {schema.name}") from None
        except BadBytes as error:
            raise AvroMismatch(f"its bytes are no {schema.name}: {error}") from None

    def _read_scalar_or_raise_fault(self, schema: AvroType) -> None:
        data, begin = self._data, self._at
        match schema.kind:
            case "boolean":
                if data[begin] > 1:
                    raise BadBytes(f"byte {data[begin]}, and not 0 or 1")
                self._at += 1
            case "int":
                self._at = skip_int(data, begin)
            case "long":
                self._at = skip_long(data, begin)
            case "bytes":
                self._at = skip_sized(data, begin)
            case "string":
                self._read_text_or_raise_fault()
            case "enum":
                count = len(schema.properties["symbols"])
                self._at = read_choice(data, begin, count, "symbols")[1]
            case kind:
                self._at += schema.properties["size"] if kind == "fixed" else _FIXED_SIZES[kind]
                if self._at > len(data):
                    raise IndexError

    def _read_text_or_raise_fault(self) -> str:
        end = skip_sized(self._data, self._at)
        _, begin = read_block(self._data, self._at)
        self._at = end
        try:
            return self._data[begin:end].decode()
        except UnicodeDecodeError as error:
            raise BadBytes(f"it is no UTF-8: {error}") from None

    def _read_union_or_raise_fault(self, union: AvroType, depth: int) -> None:
        number, self._at = read_choice(self._data, self._at, len(union.branches), "branches")
        self._read_value_or_raise_fault(union.branches[number >> 1], depth)

    def _read_record_or_raise_fault(self, record: AvroType, depth: int) -> None:
        if depth >= DEPTH_MAX:
            raise AvroMismatch(f"it is nested more than {DEPTH_MAX} deep")
        name = ""
        try:
            for each in record.fields:
                name = each.name
                self._read_value_or_raise_fault(each.type, depth + 1)
        except AvroMismatch as misfit:
            raise misfit.with_parent_step(f".{name}") from None

    def _read_blocks_or_raise_fault(self, schema: AvroType, depth: int) -> None:
        assert schema.items is not None
        place = 0
        while True:
            count, self._at = read_block(self._data, self._at)
            if not count:
                return
            size_min = find_smallest_byte_count(schema.items) + (schema.kind == "map")
            if count * size_min > len(self._data) - self._at:
                raise BadBytes(
                    f"{count} elements, and {len(self._data) - self._at} bytes are left for them"
                )
            if not size_min:
                self._count_empty_elements(count)
                continue
            for _ in range(count):
                step = f"[{place}]"
                if schema.kind == "map":
                    step = f"[{self._read_text_or_raise_fault()!r}]"
                try:
                    self._read_value_or_raise_fault(schema.items, depth + 1)
                except AvroMismatch as misfit:
                    raise misfit.with_parent_step(step) from None
                place += 1

    def _count_empty_elements(self, count: int) -> None:
        self._empty_elements += count
        if self._empty_elements > EMPTY_ELEMENTS_MAX:
            raise BadBytes(f"more than {EMPTY_ELEMENTS_MAX} elements that have no bytes")


def find_smallest_byte_count(schema: AvroType, above: frozenset[int] = frozenset()) -> int:
    """Return the smallest number of bytes that values of a type have; 0 if they have none at all.

    A record within itself counts for nothing: what it is in has a byte already.
    """
    match schema.kind:
        case "null":
            return 0
        case "float" | "double":
            return _FIXED_SIZES[schema.kind]
        case "fixed":
            return int(schema.properties["size"])
        case "union":
            branches = schema.branches
            return 1 + min((find_smallest_byte_count(each, above) for each in branches), default=0)
        case "fastavro":
            assert schema.underlying is not None
            return find_smallest_byte_count(schema.underlying, above)
        case kind if kind in RECORDS:
            if id(schema) in above:
                return 0
            above |= {id(schema)}
            return sum(find_smallest_byte_count(each.type, above) for each in schema.fields)
    return 1
