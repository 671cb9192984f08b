"""Serialise a row's old and new value in one record of a repartition topic.

    old                              0
    new                              1
    new's length (varint), new, old  2
    old                      latest  3
    new                      latest  4
    new's length (varint), new, old  latest  5

The last byte is the layout, and in the last three the one before it says whether the change is the
latest (1) or not (0). Kafka Streams 4.3 writes the first three and reads all, and so does this
serde: `latest` is not written, and is True when it is read. Source: ChangedSerializer,
ChangedDeserializer; the varint is ByteUtils' (zigzag).
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

from state.shown_values import describe_value
from streams.common.changes import Change
from streams.serdes.serde import Field, Serde

NewBytes: TypeAlias = bytes
OldBytes: TypeAlias = bytes
IsLatest: TypeAlias = bool
NextIndex: TypeAlias = int

V = TypeVar("V")

_OLD, _NEW, _BOTH = b"\x00", b"\x01", b"\x02"
_VARINT_BYTES_MAX = 5


def changed(inner: Serde[V]) -> Serde[Change[V]]:
    """Return the serde of `Change`s whose values are those of `inner`.

    At least one of a change's new and old value must not be None.

    >>> from streams.common.changes import Change
    >>> serdes.changed(serdes.string).serialize(Change("new", None)).hex()
    '6e657701'
    """
    serialize_one, deserialize_one = inner.serialize, inner.deserialize

    def serialize_change(change: Change[V]) -> bytes:
        if type(change) is not Change:
            raise TypeError(f"needs a Change, got {describe_value(change)}")
        new, old, _ = change
        if new is None:
            if old is None:
                raise ValueError("a Change needs a new or an old value, got neither")
            return serialize_one(old) + _OLD
        if old is None:
            return serialize_one(new) + _NEW
        data = serialize_one(new)
        return b"".join((_encode_varint(len(data)), data, serialize_one(old), _BOTH))

    def deserialize_change(data: bytes) -> Change[V]:
        new, old, latest = _split_change(data)
        return Change(
            None if new is None else deserialize_one(new),
            None if old is None else deserialize_one(old),
            latest,
        )

    def bind_to_topic(topic: str, field: Field) -> Serde[Any]:
        return changed(inner.for_topic(topic, field))

    binder = None if inner.binder is None else bind_to_topic
    return Serde(
        f"changed({inner.name})",
        serialize_change,
        deserialize_change,
        binder,
        message_type=inner.message_type,
    )


def _split_change(data: bytes) -> tuple[NewBytes | None, OldBytes | None, IsLatest]:
    """Split a change's bytes into new value, old value and whether it is the latest."""
    if not data:
        raise ValueError("needs a Change's bytes, got none")
    flag, end = data[-1], len(data) - 1
    latest = True
    if 3 <= flag <= 5:
        end -= 1
        if end < 0 or data[end] > 1:
            raise ValueError(f"whether it is the latest must be 0 or 1, got {data[-2:-1]!r}")
        latest = data[end] == 1
        flag -= 3
    match flag:
        case 0:
            return None, data[:end], latest
        case 1:
            return data[:end], None, latest
        case 2:
            begin, length = _read_varint(data, end)
            middle = begin + length
            if not begin <= middle <= end:
                raise ValueError(f"a new value of {length} bytes: {end - begin} are there")
            return data[begin:middle], data[middle:end], latest
    raise ValueError(f"a Change's last byte must be 0 to 5, got {flag}")


def _encode_varint(length: int) -> bytes:
    """Encode a length as zigzag varint: seven bits a byte, the lowest first."""
    rest = length << 1
    if rest < 0x80:
        return bytes((rest,))
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _read_varint(data: bytes, end: int) -> tuple[NextIndex, int]:
    """Return the index after the varint at the beginning of `data`, and its number."""
    number = 0
    for at in range(min(end, _VARINT_BYTES_MAX)):
        number |= (data[at] & 0x7F) << (7 * at)
        if data[at] < 0x80:
            return at + 1, (number >> 1) ^ -(number & 1)
    raise ValueError(f"needs the new value's length first, got {data[:_VARINT_BYTES_MAX]!r}")
