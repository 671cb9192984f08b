"""Join sides: keys and values of the store that the two sides of a left or outer join share.

    key      timestamp (int64), 1 for left or 0 for right, the key
    value    1, count (int32), and of each: length (int32), 1 for left or 0 for right, the value

Numbers are big-endian, so that the keys lie in the order of their times. Source:
TimestampedKeyAndJoinSideSerializer, LeftOrRightValueSerializer, and ListSerializer of Kafka's
clients with entries of variable size.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from streams.serdes.serde import Field, Serde


class TimestampedKeyAndJoinSide(NamedTuple):
    """The records of one side that have one key and one time."""

    timestamp_ms: int
    is_left: bool
    key: Any


class LeftOrRightValue(NamedTuple):
    """The value of one record, and the side that it came from."""

    is_left: bool
    value: Any


_SIDE = struct.Struct(">q?")
_LIST = struct.Struct(">bi")
_VARIABLE_SIZE = 1
_LENGTH = struct.Struct(">i")


def timestamped_key_and_join_side(inner: Serde[Any]) -> Serde[TimestampedKeyAndJoinSide]:
    """The serde of keys whose own serde is `inner`."""
    serialize_key, deserialize_key = inner.serialize, inner.deserialize
    pack, unpack_from, size = _SIDE.pack, _SIDE.unpack_from, _SIDE.size

    def serialize(sided: TimestampedKeyAndJoinSide) -> bytes:
        timestamp_ms, is_left, key = sided
        return pack(timestamp_ms, is_left) + serialize_key(key)

    def deserialize(data: bytes) -> TimestampedKeyAndJoinSide:
        timestamp_ms, is_left = unpack_from(data)
        return TimestampedKeyAndJoinSide(timestamp_ms, is_left, deserialize_key(data[size:]))

    def bind(topic: str, field: Field) -> Serde[Any]:
        return timestamped_key_and_join_side(inner.for_topic(topic, field))

    binder = None if inner.binder is None else bind
    return Serde(f"timestamped_key_and_join_side({inner.name})", serialize, deserialize, binder)


def left_or_right_values(left: Serde[Any], right: Serde[Any]) -> Serde[list[LeftOrRightValue]]:
    """The serde of values of the two sides, in the order in which they came."""
    serialize_left, serialize_right = left.serialize, right.serialize
    deserialize_left, deserialize_right = left.deserialize, right.deserialize

    def serialize(values: list[LeftOrRightValue]) -> bytes:
        parts = [_LIST.pack(_VARIABLE_SIZE, len(values))]
        for is_left, value in values:
            data = serialize_left(value) if is_left else serialize_right(value)
            parts += (_LENGTH.pack(1 + len(data)), b"\x01" if is_left else b"\x00", data)
        return b"".join(parts)

    def deserialize(data: bytes) -> list[LeftOrRightValue]:
        kind, count = _LIST.unpack_from(data)
        if kind != _VARIABLE_SIZE:
            raise ValueError(f"needs a list of entries of variable size, got kind {kind}")
        values, at = [], _LIST.size
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(data, at)
            begin, at = at + _LENGTH.size + 1, at + _LENGTH.size + length
            is_left = data[begin - 1] == 1
            one = data[begin:at]
            value = deserialize_left(one) if is_left else deserialize_right(one)
            values.append(LeftOrRightValue(is_left, value))
        return values

    def bind(topic: str, field: Field) -> Serde[Any]:
        return left_or_right_values(left.for_topic(topic, field), right.for_topic(topic, field))

    binder = None if left.binder is None and right.binder is None else bind
    return Serde(f"left_or_right({left.name}, {right.name})", serialize, deserialize, binder)
