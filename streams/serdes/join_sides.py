"""Serialise keys and values of the store that both sides of a left or outer join share.

    key      timestamp (int64), 1 for left or 0 for right, the key
    value    1, count (int32), and for each: length (int32), 1 for left or 0 for right, the value

Numbers are big-endian, so that the keys are in the order of their times. Source:
TimestampedKeyAndJoinSideSerializer, LeftOrRightValueSerializer, and ListSerializer of Kafka's
clients with entries of variable size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from streams.serdes.described_types import describe_tuple_of_types
from streams.serdes.serde import Field, Serde

IsLeft: TypeAlias = bool
ValueBytes: TypeAlias = bytes


class TimestampedKeyAndJoinSide(NamedTuple):
    """Identifies the records of one side that have one key and one timestamp."""

    timestamp_ms: int
    is_left: bool
    key: Any


class LeftOrRightValue(NamedTuple):
    """Holds the value of one record, and the side that it came from."""

    is_left: bool
    value: Any


_SIDE = struct.Struct(">q?")
_LIST = struct.Struct(">bi")
_VARIABLE_SIZE = 1
_LENGTH = struct.Struct(">i")


def _split_entries(data: bytes) -> Iterator[tuple[IsLeft, ValueBytes]]:
    """Yield side and bytes of each value of a list. Raises ValueError for what is no such list."""
    if len(data) < _LIST.size:
        raise ValueError(f"needs a list of values, got {data!r}")
    kind, count = _LIST.unpack_from(data)
    if kind != _VARIABLE_SIZE or count < 0:
        raise ValueError(f"needs a list of entries of variable size, got kind {kind} of {count}")
    at, end = _LIST.size, len(data)
    for _ in range(count):
        begin = at + _LENGTH.size + 1
        length = _LENGTH.unpack_from(data, at)[0] if begin <= end else 0
        at += _LENGTH.size + length
        if length < 1 or at > end or data[begin - 1] > 1:
            raise ValueError(f"an entry of {length} bytes can't end at {at} of {end} bytes")
        yield data[begin - 1] == 1, data[begin:at]
    if at != end:
        raise ValueError(f"a list of {count} values ends at {at} of {end} bytes")


def create_timestamped_key_serde(inner: Serde[Any]) -> Serde[TimestampedKeyAndJoinSide]:
    """Return the serde of TimestampedKeyAndJoinSide, with `inner` for the key itself."""
    serialize_key, deserialize_key = inner.serialize, inner.deserialize
    pack, unpack_from, size = _SIDE.pack, _SIDE.unpack_from, _SIDE.size

    def serialize_sided_key(sided: TimestampedKeyAndJoinSide) -> bytes:
        timestamp_ms, is_left, key = sided
        return pack(timestamp_ms, is_left) + serialize_key(key)

    def deserialize_sided_key(data: bytes) -> TimestampedKeyAndJoinSide:
        if len(data) < size or data[size - 1] > 1:
            raise ValueError(f"needs a time, a side and a key, got {data[:20]!r}")
        timestamp_ms, is_left = unpack_from(data)
        return TimestampedKeyAndJoinSide(timestamp_ms, is_left, deserialize_key(data[size:]))

    def bind_to_topic(topic: str, field: Field) -> Serde[Any]:
        return create_timestamped_key_serde(inner.for_topic(topic, field))

    binder = None if inner.binder is None else bind_to_topic
    return Serde(
        f"timestamped_key_and_join_side({inner.name})",
        serialize_sided_key,
        deserialize_sided_key,
        binder,
        message_type=inner.message_type,
    )


def create_left_or_right_values_serde(
    left: Serde[Any], right: Serde[Any]
) -> Serde[list[LeftOrRightValue]]:
    """Return the serde of a list of LeftOrRightValue, in the order in which the records came."""
    serialize_left, serialize_right = left.serialize, right.serialize
    deserialize_left, deserialize_right = left.deserialize, right.deserialize

    def serialize_values(values: list[LeftOrRightValue]) -> bytes:
        parts = [_LIST.pack(_VARIABLE_SIZE, len(values))]
        for is_left, value in values:
            data = serialize_left(value) if is_left else serialize_right(value)
            parts += (_LENGTH.pack(1 + len(data)), b"\x01" if is_left else b"\x00", data)
        return b"".join(parts)

    def deserialize_values(data: bytes) -> list[LeftOrRightValue]:
        return [
            LeftOrRightValue(is_left, deserialize_left(one) if is_left else deserialize_right(one))
            for is_left, one in _split_entries(data)
        ]

    def bind_to_topic(topic: str, field: Field) -> Serde[Any]:
        return create_left_or_right_values_serde(
            left.for_topic(topic, field), right.for_topic(topic, field)
        )

    binder = None if left.binder is None and right.binder is None else bind_to_topic
    return Serde(
        f"left_or_right({left.name}, {right.name})",
        serialize_values,
        deserialize_values,
        binder,
        message_type=describe_tuple_of_types(left.message_type, right.message_type),
    )
