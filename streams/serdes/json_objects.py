"""Serialise dicts and lists, or values of a declared type, as JSON, by orjson."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import orjson

from streams.serdes.constructed_values import create_checked_encoder
from streams.serdes.dataclass_builder import create_builder, describe_type
from streams.serdes.described_types import describe_declared_type
from streams.serdes.json_exactness import (
    MAX_DEPTH,
    NotExact,
    copy_plain,
    deserialize_exactly,
    serialize_exactly,
    serialize_plain,
)
from streams.serdes.json_types import create_encoder
from streams.serdes.serde import Serde
from streams.serdes.unknown_fields import Unknown, check_unknown

T = TypeVar("T")


class JsonSerde(Serde[Any]):
    """Serialises JSON by orjson; calling it with a type returns a serde that builds its values.

    >>> serdes.json.serialize({"total": 5, "items": ["pen"]})
    b'{"total":5,"items":["pen"]}'
    >>> serdes.json.deserialize(b'{"total": 5}')
    {'total': 5}
    >>> serdes.json(tuple[int, ...]).deserialize(b"[1, 2]")
    (1, 2)
    """

    @overload
    def __call__(
        self, type: None = None, *, lossy: bool = False, unknown: Unknown = "ignore"
    ) -> Serde[Any]: ...
    @overload
    def __call__(
        self, type: type[T], *, lossy: bool = False, unknown: Unknown = "ignore"
    ) -> Serde[T]: ...
    @overload
    def __call__(
        self, type: Any, *, lossy: bool = False, unknown: Unknown = "ignore"
    ) -> Serde[Any]: ...
    def __call__(
        self,
        type: Any = None,  # noqa: A002  the public name
        *,
        lossy: bool = False,
        unknown: Unknown = "ignore",
    ) -> Serde[Any]:
        """Return the serde of a type, or this one without a type.

        `type` is a dataclass, or another type that JSON has only where it is declared, as datetime,
        tuple[int, ...] and dict[UUID, Order]. The types of all fields are checked, both ways.
        `unknown` says what becomes of the fields of a message that a dataclass does not have: they
        are left out ("ignore"), the message is refused ("refuse"), or they are kept with the object
        and written with it ("keep"). `lossy` writes without a type what orjson writes, though it
        comes back as another type: a datetime as text, a tuple as list, NaN as null.

        Raises TypeError if `type` is none of these, or has a field whose type JSON can't tell;
        ValueError for another `unknown`.
        """
        check_unknown(unknown)
        if type is None:
            return _LOSSY if lossy else self
        if lossy:
            raise TypeError("lossy=True writes values without a type: give one of the two")
        build = create_builder(type, unknown)
        if build is None:
            raise TypeError(
                "serdes.json takes a dataclass, or a type that JSON has only where it is declared "
                f"(datetime, Decimal, tuple[int, ...]), got {type!r}"
            )
        encode = create_checked_encoder(
            type, create_encoder(type, unknown), build, copy_plain, NotExact
        )

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

        return Serde(
            f"json({describe_type(type)})",
            serialize_declared,
            deserialize_declared,
            message_type=describe_declared_type(type, unknown),
        )


json = JsonSerde("json", serialize_exactly, deserialize_exactly)
_LOSSY: Serde[Any] = Serde("json(lossy=True)", orjson.dumps, deserialize_exactly)
