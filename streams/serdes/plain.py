"""Serialise strings, bytes and numbers, as Kafka's own serialisers do.

Numbers are big-endian; integers are two's complement.
"""

from __future__ import annotations

import builtins
import struct
from typing import Any

from streams.serdes.serde import Serde, shown


def _same(value: builtins.bytes) -> builtins.bytes:
    if not isinstance(value, builtins.bytes):
        raise TypeError(f"needs bytes, got {shown(value)}")
    return value


def _fixed(name: str, code: str, takes: str) -> Serde[Any]:
    layout = struct.Struct(code)
    pack, unpack, size = layout.pack, layout.unpack, layout.size

    def serialize_number(value: Any) -> builtins.bytes:
        try:
            return pack(value)
        except (struct.error, OverflowError) as error:
            raise ValueError(f"{name} takes {takes}, got {shown(value)}") from error

    def deserialize_number(data: builtins.bytes) -> Any:
        if len(data) != size:
            raise ValueError(f"needs {size} bytes, got {len(data)}")
        return unpack(data)[0]

    return Serde(name, serialize_number, deserialize_number)


def _nothing_to_bytes(value: None) -> builtins.bytes:
    raise TypeError(f"takes None only, got {shown(value)}")


def _bytes_to_nothing(data: builtins.bytes) -> None:
    raise ValueError(f"takes None only, got {shown(data)}")


# str.encode itself, not a function around it, which would cost as much again for each record. It
# names the type that it refuses, and whoever reports that (a sink, a store) adds the value.
string: Serde[str] = Serde("string", str.encode, builtins.bytes.decode)
int32: Serde[int] = _fixed("int32", ">i", "int from -2**31 to 2**31 - 1")
int64: Serde[int] = _fixed("int64", ">q", "int from -2**63 to 2**63 - 1")
float64: Serde[float] = _fixed("float64", ">d", "float, or int that fits one")
none: Serde[None] = Serde("none", _nothing_to_bytes, _bytes_to_nothing)
bytes: Serde[builtins.bytes] = Serde("bytes", _same, _same)  # noqa: A001  the public name
