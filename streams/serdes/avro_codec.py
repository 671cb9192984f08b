"""Write and read the bytes of Avro messages exactly, with fastavro.

fastavro codes the bytes, in C, by wire schemas (`avro_schema`). What it would change is done here:
branches of unions, logical types, the reader's schema, and types of values.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import fastavro

from state.shown_values import quote_value
from streams.serdes.avro_bytes import create_message_check, has_arrays_of_empty_elements
from streams.serdes.avro_faults import DEPTH_MAX, find_fault
from streams.serdes.avro_mismatch import AvroMismatch
from streams.serdes.avro_resolution import create_resolver
from streams.serdes.avro_schema import (
    contains_itself,
    create_wire_schema,
    read_schema,
)
from streams.serdes.avro_union_rules import check_unions
from streams.serdes.avro_unions import AvroOptions
from streams.serdes.avro_writing import create_wire_value_converter

_TOO_DEEP = "it is nested too deeply for Python"


class AvroSchema:
    """Represents a schema as fastavro has parsed it, with what reads and writes its bytes.

    Raises ValueError for one with unions that Avro forbids.
    """

    def __init__(self, parsed: Any) -> None:
        self.parsed = parsed
        self.type = read_schema(parsed)
        check_unions(self.type)
        self._wire = fastavro.parse_schema(create_wire_schema(self.type))
        self.is_bounded = not contains_itself(self.type)
        self.check = create_message_check(self.type)
        self.has_empty_elements = has_arrays_of_empty_elements(self.type)

    def write_prepared(self, prepared: Any) -> bytes:
        """Return the bytes of a message that was prepared for writing."""
        if self.type.kind == "bytes":  # as Java's serialiser: the message is the bytes
            return bytes(prepared)
        out = BytesIO()
        fastavro.schemaless_writer(out, self._wire, prepared)
        return out.getvalue()

    def read_raw(self, data: bytes) -> Any:
        """Return a message as fastavro reads it by the wire schema.

        Raises AvroMismatch for bytes that are no message of the schema, or more than one.
        """
        if self.type.kind == "bytes":
            return data
        self.check(data)
        try:
            return fastavro.schemaless_reader(
                BytesIO(data),
                self._wire,
                None,
                return_record_name=True,
                return_record_name_override=True,
            )
        except Exception as error:
            fault = find_fault(self.type, data)
            if fault is None:  # a logical type that was added to fastavro
                fault = AvroMismatch(f"its bytes can't be read: {type(error).__name__}: {error}")
            raise fault from error


def create_writer(schema: AvroSchema, options: AvroOptions) -> Callable[[Any], bytes]:
    """Return the function that writes messages of a schema, or raises AvroMismatch."""
    prepare = create_wire_value_converter(schema.type, options)

    def write_message(value: Any) -> bytes:
        if not schema.is_bounded and _is_too_deep(value):
            raise AvroMismatch(f"it is nested more than {DEPTH_MAX} deep")
        try:
            data = schema.write_prepared(prepare(value))
            if schema.has_empty_elements:  # of which a reader takes so many
                schema.check(data)
            return data
        except RecursionError:
            raise AvroMismatch(_TOO_DEEP) from None
        except UnicodeEncodeError as error:
            raise _find_surrogate(value) or error from None

    return write_message


def create_reader(
    writer: AvroSchema, reader: AvroSchema, options: AvroOptions
) -> Callable[[bytes], Any]:
    """Return the function that reads a writer's messages by the reader's schema.

    It raises AvroMismatch where one does not fit the other.
    """
    resolve = create_resolver(writer.type, reader.type, options)

    def read_message(data: bytes) -> Any:
        try:
            return resolve(writer.read_raw(data))
        except RecursionError:
            raise AvroMismatch(_TOO_DEEP) from None

    return read_message


def _is_too_deep(value: Any) -> bool:
    """Return whether a value has dicts, lists and pairs in each other beyond the limit."""
    level = [value]
    for _ in range(DEPTH_MAX):
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list | tuple):
                below += each
        if not below:
            return False
        level = below
    return any(isinstance(each, dict | list | tuple) for each in level)


def _find_surrogate(value: Any, path: str = "") -> AvroMismatch | None:
    """Return an error for the first text in a value that holds a lone surrogate, or None."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return AvroMismatch(f"UTF-8 has no lone surrogates, got {quote_value(value)}", path)
        return None
    if isinstance(value, dict):
        parts = [(f".{key}", each) for key, each in value.items()]
        parts += [(f"[{key!r}]", key) for key in value]
    elif isinstance(value, list | tuple):
        parts = [(f"[{index}]", each) for index, each in enumerate(value)]
    else:
        return None
    return next(
        (found for step, each in parts if (found := _find_surrogate(each, path + step))), None
    )
