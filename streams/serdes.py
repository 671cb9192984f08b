"""Serdes: how keys and values become bytes and back.

Every serde takes and gives objects that are not None: a null key or value passes all steps as None
and is never handed to a serde. Integers and floats are big-endian and two's complement, as Kafka's
own serialisers write them.
"""

from __future__ import annotations

import builtins
import dataclasses
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import orjson

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Serde(Generic[T]):
    """A pair of functions and a name for messages. Either raises what it likes on bad input."""

    name: str
    serialize: Callable[[T], builtins.bytes]
    deserialize: Callable[[builtins.bytes], T]


def of(
    serialize: Callable[[T], builtins.bytes],
    deserialize: Callable[[builtins.bytes], T],
    *,
    name: str = "custom",
) -> Serde[T]:
    """A serde from two functions."""
    return Serde(name, serialize, deserialize)


def _same(value: builtins.bytes) -> builtins.bytes:
    if not isinstance(value, builtins.bytes):
        raise TypeError(f"needs bytes, got {type(value).__name__}")
    return value


def _fixed(name: str, code: str, kind: type) -> Serde[Any]:
    layout = struct.Struct(code)
    pack, unpack, size = layout.pack, layout.unpack, layout.size

    def serialize(value: Any) -> builtins.bytes:
        try:
            return pack(value)
        except struct.error as error:
            got = type(value).__name__
            raise ValueError(f"needs {kind.__name__} in range, got {got}: {error}") from error

    def deserialize(data: builtins.bytes) -> Any:
        if len(data) != size:
            raise ValueError(f"needs {size} bytes, got {len(data)}")
        return unpack(data)[0]

    return Serde(name, serialize, deserialize)


def _nothing_to_bytes(value: None) -> builtins.bytes:
    raise TypeError(f"takes None only, got {type(value).__name__}")


def _bytes_to_nothing(data: builtins.bytes) -> None:
    return None


class JsonSerde(Serde[Any]):
    """JSON by orjson. Called with a dataclass it gives a serde that builds that dataclass."""

    @overload
    def __call__(self, type: None = None) -> Serde[Any]: ...
    @overload
    def __call__(self, type: type[T]) -> Serde[T]: ...
    def __call__(self, type: Any = None) -> Serde[Any]:  # noqa: A002  the public name
        if type is None:
            return self
        if not (isinstance(type, builtins.type) and dataclasses.is_dataclass(type)):
            raise TypeError(f"serdes.json takes a dataclass, got {type!r}")

        def deserialize(data: builtins.bytes) -> Any:
            return type(**orjson.loads(data))

        return Serde(f"json({type.__name__})", orjson.dumps, deserialize)


string: Serde[str] = Serde("string", str.encode, builtins.bytes.decode)
int32: Serde[int] = _fixed("int32", ">i", int)
int64: Serde[int] = _fixed("int64", ">q", int)
float64: Serde[float] = _fixed("float64", ">d", float)
json = JsonSerde("json", orjson.dumps, orjson.loads)
none: Serde[None] = Serde("none", _nothing_to_bytes, _bytes_to_nothing)
bytes: Serde[builtins.bytes] = Serde("bytes", _same, _same)  # noqa: A001  the public name
