"""Serialise strings, bytes and numbers, as Kafka's own serialisers do.

Numbers are big-endian; integers are two's complement. A value of another type is only taken where
an equal one comes back: an int as float64, a subclass of int or float. A bool is no number here.
"""

from __future__ import annotations

import builtins
import numbers
import struct
from typing import Any

from state.shown_values import describe_value
from streams.serdes.serde import Serde


def _require_bytes(value: builtins.bytes) -> builtins.bytes:
    if not isinstance(value, builtins.bytes):
        raise TypeError(f"needs bytes, got {describe_value(value)}")
    return value


def _create_fixed_size_serde(
    name: str, struct_format: str, kind: type, accepted: str
) -> Serde[Any]:
    layout = struct.Struct(struct_format)
    pack, unpack, size = layout.pack, layout.unpack, layout.size

    def serialize_number(value: Any) -> builtins.bytes:
        try:
            data = pack(value)
        except (struct.error, OverflowError) as error:
            raise ValueError(f"{name} takes {accepted}, got {describe_value(value)}") from error
        # A number of another type may have been rounded.
        if type(value) is not kind and not _equals_when_read_back(value, unpack(data)[0]):
            raise ValueError(f"{name} takes {accepted}, got {describe_value(value)}")
        return data

    def deserialize_number(data: builtins.bytes) -> Any:
        if len(data) != size:
            raise ValueError(f"needs {size} bytes, got {len(data)}")
        return unpack(data)[0]

    return Serde(name, serialize_number, deserialize_number)


def _equals_when_read_back(value: Any, read: Any) -> bool:
    """Return whether a number equals the one that its bytes are read back as; NaN is NaN."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    if isinstance(value, numbers.Rational) and not isinstance(value, numbers.Integral):
        return False
    return bool(value == read or (value != value and read != read))


def _refuse_to_serialize(value: None) -> builtins.bytes:
    raise TypeError(f"takes None only, got {describe_value(value)}")


def _refuse_to_deserialize(data: builtins.bytes) -> None:
    raise ValueError(f"takes None only, got {describe_value(data)}")


# str.encode itself, not a function around it, which would cost as much again for each record. What
# it says of another type is put into other words by `state.errors.describe_serde_error`.
string: Serde[str] = Serde("string", str.encode, builtins.bytes.decode)
int32: Serde[int] = _create_fixed_size_serde("int32", ">i", int, "int from -2**31 to 2**31 - 1")
int64: Serde[int] = _create_fixed_size_serde("int64", ">q", int, "int from -2**63 to 2**63 - 1")
float64: Serde[float] = _create_fixed_size_serde(
    "float64", ">d", float, "float, or int that equals one"
)
none: Serde[None] = Serde("none", _refuse_to_serialize, _refuse_to_deserialize)
bytes: Serde[builtins.bytes] = Serde("bytes", _require_bytes, _require_bytes)  # noqa: A001  the public name
