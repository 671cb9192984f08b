"""Serialise dicts and lists, or values of a declared type, as JSON, by orjson."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import orjson

from streams.serdes.dataclass_builder import create_builder, describe_type
from streams.serdes.json_exactness import (
    MAX_DEPTH,
    NotExact,
    deserialize_exactly,
    serialize_exactly,
    serialize_plain,
)
from streams.serdes.json_types import create_encoder
from streams.serdes.serde import Serde

T = TypeVar("T")


class JsonSerde(Serde[Any]):
    """Serialises JSON by orjson; calling it with a type returns a serde that builds its values."""

    @overload
    def __call__(self, type: None = None, *, lossy: bool = False) -> Serde[Any]: ...
    @overload
    def __call__(self, type: type[T], *, lossy: bool = False) -> Serde[T]: ...
    @overload
    def __call__(self, type: Any, *, lossy: bool = False) -> Serde[Any]: ...
    def __call__(self, type: Any = None, *, lossy: bool = False) -> Serde[Any]:  # noqa: A002  the public name
        """Return the serde of a type, or this one without a type.

        `type` is a dataclass, or another type that JSON has only where it is declared, as datetime,
        tuple[int, ...] and dict[UUID, Order]. `lossy` writes without a type what orjson writes,
        though it comes back as another type: a datetime as text, a tuple as list, NaN as null.

        Raises TypeError if `type` is none of these, or has a field whose type JSON can't tell.
        """
        if type is None:
            return _LOSSY if lossy else self
        if lossy:
            raise TypeError("lossy=True writes values without a type: give one of the two")
        build = create_builder(type)
        if build is None:
            raise TypeError(
                "serdes.json takes a dataclass, or a type that JSON has only where it is declared "
                f"(datetime, Decimal, tuple[int, ...]), got {type!r}"
            )
        encode = create_encoder(type)

        def serialize_declared(value: Any) -> bytes:
            try:
                return serialize_plain(encode(value))
            except RecursionError:
                reason = f"it is nested more than {MAX_DEPTH} deep, or holds itself"
                raise NotExact(reason) from None

        def deserialize_declared(data: bytes) -> Any:
            try:
                return build(deserialize_exactly(data))
            except RecursionError:
                raise ValueError("it is nested too deeply for Python") from None

        return Serde(f"json({describe_type(type)})", serialize_declared, deserialize_declared)


json = JsonSerde("json", serialize_exactly, deserialize_exactly)
_LOSSY: Serde[Any] = Serde("json(lossy=True)", orjson.dumps, deserialize_exactly)
