"""Represent a buffered change with the record that brought it, and encode and decode it.

As bytes, numbers big-endian, sizes int32 and -1 where there is nothing (Kafka Streams' BufferValue
and ProcessorRecordContext, changelog version 3):

    timestamp int64, offset int64, size and topic, partition int32,
    number of headers int32, for each: size and name, size and value
    size and prior value
    size and old value; the size -2, and no value: it is the prior value
    size and new value
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

NextIndex: TypeAlias = int
"""The index of the byte after what was read."""
Headers = tuple[tuple[str, bytes | None], ...]

_NOTHING = -1
_AS_PRIOR = -2
_FIXED_BYTES = 20
"""The size of an origin without its topic: two numbers of 8 bytes and one of 4."""

_PLACES_MAX = 1024

_pack_times = struct.Struct(">qq").pack
_unpack_times = struct.Struct(">qq").unpack_from
_pack_int = struct.Struct(">i").pack
_unpack_int = struct.Struct(">i").unpack_from
_NO_VALUE = _pack_int(_NOTHING)
_PRIOR_AGAIN = _pack_int(_AS_PRIOR)


class RecordOrigin(NamedTuple):
    """Identifies the record that brought a change, with the change's timestamp in ms.

    A change that no record brought has the topic "", and partition and offset -1. Kafka Streams'
    ProcessorRecordContext.
    """

    timestamp_ms: int
    offset: int
    partition: int
    topic: str
    headers: Headers


# Does the same as `RecordOrigin(...)` in a third of the time, as it skips the constructor that
# NamedTuple writes in Python.
create_origin: Callable[[tuple[int, int, int, str, Headers]], RecordOrigin] = partial(
    tuple.__new__, RecordOrigin
)


class BufferedChange(NamedTuple):
    """Represents a buffered change by its prior, old and new value and the record that brought it.

    Values are bytes, None is no value. `prior` is the value from before the key was buffered: the
    one that the steps after the buffer know (Kafka Streams' BufferValue).
    """

    prior: bytes | None
    old: bytes | None
    new: bytes | None
    origin: RecordOrigin


ChangeFields = tuple[bytes | None, bytes | None, bytes | None, RecordOrigin]
"""The fields of a BufferedChange, as one or as a plain tuple."""


def change_size_bytes(change: ChangeFields) -> int:
    """Return the memory that Kafka Streams counts for `change`, in bytes.

    Limits of buffers are in this unit (`residentMemorySizeEstimate`). An old value that equals the
    prior one is counted once.
    """
    prior, old, new, origin = change
    size = _FIXED_BYTES + len(origin.topic)
    for name, value in origin.headers:
        size += len(name) + (0 if value is None else len(value))
    if prior is not None:
        size += len(prior)
    if old is not None and old != prior:
        size += len(old)
    return size if new is None else size + len(new)


def encode_change(change: ChangeFields) -> bytes:
    """Encode a buffered change in the layout that the module describes."""
    prior, old, new, (timestamp_ms, offset, partition, topic, headers) = change
    encoded = _pack_times(timestamp_ms, offset) + _encode_origin(topic, partition, len(headers))
    for name, value in headers:
        encoded += _encode_with_size(name.encode()) + _encode_with_size(value)
    encoded += _NO_VALUE if prior is None else _pack_int(len(prior)) + prior
    if old is None:
        encoded += _NO_VALUE
    else:
        encoded += _PRIOR_AGAIN if old == prior else _pack_int(len(old)) + old
    return encoded + (_NO_VALUE if new is None else _pack_int(len(new)) + new)


@lru_cache(_PLACES_MAX)
def _encode_origin(topic: str, partition: int, header_count: int) -> bytes:
    """Encode a record's topic, partition and number of headers, which follow a change's times."""
    return _encode_with_size(topic.encode()) + _pack_int(partition) + _pack_int(header_count)


def decode_change(data: bytes) -> tuple[BufferedChange, NextIndex]:
    """Decode the change at the beginning of `data`; return it and the index of the byte after it.

    Raises ValueError for bytes that are no buffered change.
    """
    try:
        timestamp_ms, offset = _unpack_times(data)
        topic, at = _decode_with_size(data, 16)
        (partition,), (count,) = _unpack_int(data, at), _unpack_int(data, at + 4)
        at += 8
        headers = []
        for _ in range(count):  # Kafka's old versions wrote -1 for none
            name, at = _decode_with_size(data, at)
            value, at = _decode_with_size(data, at)
            headers.append(((name or b"").decode(), value))
        prior, at = _decode_with_size(data, at)
        if _unpack_int(data, at)[0] == _AS_PRIOR:
            old, at = prior, at + 4
        else:
            old, at = _decode_with_size(data, at)
        new, at = _decode_with_size(data, at)
    except struct.error as error:
        raise ValueError(f"{len(data)} bytes are no buffered change: {error}") from error
    origin = RecordOrigin(timestamp_ms, offset, partition, (topic or b"").decode(), tuple(headers))
    return BufferedChange(prior, old, new, origin), at


def _encode_with_size(value: bytes | None) -> bytes:
    return _NO_VALUE if value is None else _pack_int(len(value)) + value


def _decode_with_size(data: bytes, position: int) -> tuple[bytes | None, NextIndex]:
    (size,) = _unpack_int(data, position)
    position += 4
    if size == _NOTHING:
        return None, position
    if size < 0 or position + size > len(data):
        raise ValueError(f"{len(data)} bytes are no buffered change: a part of {size} bytes")
    return data[position : position + size], position + size
