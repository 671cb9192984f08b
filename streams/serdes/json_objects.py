"""Serialise dicts and lists or dataclasses as JSON, by orjson."""

from __future__ import annotations

import builtins
import dataclasses
from typing import Any, TypeVar, overload

import orjson

from streams.serdes.dataclass_builder import create_builder
from streams.serdes.serde import Serde

T = TypeVar("T")


class JsonSerde(Serde[Any]):
    """Serialises JSON by orjson; calling it with a dataclass returns a serde that builds those."""

    @overload
    def __call__(self, type: None = None) -> Serde[Any]: ...
    @overload
    def __call__(self, type: type[T]) -> Serde[T]: ...
    def __call__(self, type: Any = None) -> Serde[Any]:  # noqa: A002  the public name
        """Return the serde of a dataclass, or this one without a type.

        Raises TypeError if `type` is no dataclass, or has a field whose type JSON can't tell.
        """
        if type is None:
            return self
        if not (isinstance(type, builtins.type) and dataclasses.is_dataclass(type)):
            raise TypeError(f"serdes.json takes a dataclass, got {type!r}")
        build, loads = create_builder(type), orjson.loads

        def deserialize_dataclass(data: bytes) -> Any:
            return build(loads(data))

        return Serde(f"json({type.__name__})", orjson.dumps, deserialize_dataclass)


# orjson's own functions: one in Python around them would cost as much again for small values.
json = JsonSerde("json", orjson.dumps, orjson.loads)
