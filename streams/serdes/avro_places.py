"""Find the place in a message whose bytes are none of its schema's.

fastavro tells what is wrong and not where. So a message that it can't read is read again, part by
part, until the part is found that fails.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro

from streams.serdes.avro_schema import RECORDS, AvroType, create_wire_schema


def find_unreadable(schema: AvroType, data: bytes) -> str:
    """Return the path of the part that can't be read, as `.lines[2].item`; empty for the whole."""
    return _find_in(schema, BytesIO(data))


def _find_in(schema: AvroType, stream: BytesIO) -> str:
    """Return the path of the first part of a value that can't be read, below its own place."""
    if schema.kind in RECORDS:
        for each in schema.fields:
            if (path := _try(each.type, stream, f".{each.name}")) is not None:
                return path
    elif schema.kind == "union":
        index = _read("long", stream)
        if 0 <= index < len(schema.branches):
            return _find_in(schema.branches[index], stream)
    elif schema.items is not None:
        return _find_in_blocks(schema, stream)
    return ""


def _find_in_blocks(schema: AvroType, stream: BytesIO) -> str:
    """Look through the elements of an array or a map, which are in blocks with their counts."""
    assert schema.items is not None
    place = 0
    while count := _read("long", stream):
        if count < 0:  # the size of the block in bytes follows
            _read("long", stream)
        for _ in range(abs(count)):
            step = f"[{_read('string', stream)!r}]" if schema.kind == "map" else f"[{place}]"
            if (path := _try(schema.items, stream, step)) is not None:
                return path
            place += 1
    return ""


def _try(schema: AvroType, stream: BytesIO, step: str) -> str | None:
    """Read a part, and return the path of what fails in it; None if it can be read."""
    start = stream.tell()
    try:
        _read(create_wire_schema(schema), stream)
    except Exception:
        stream.seek(start)
    else:
        return None
    try:
        return step + _find_in(schema, stream)
    except Exception:  # in a count, a name or the like, which have no place of their own
        return step


def _read(wire_schema: Any, stream: BytesIO) -> Any:
    return fastavro.schemaless_reader(stream, fastavro.parse_schema(wire_schema), None)
