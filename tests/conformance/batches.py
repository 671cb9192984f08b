"""Encode and decode record batches (v2) without the broker's code, with errors if wanted.

Layout: base offset i64, length i32, leader epoch i32, magic i8, crc u32 (of all that follows),
attributes i16, last offset delta i32, first and last timestamp i64, producer id i64, epoch i16,
base sequence i32, count i32, records.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crc32c import crc32c

# Of now: a record much older than the one after it would make the log begin a new segment.
TIMESTAMP_MS = time.time_ns() // 1_000_000
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_HEAD = struct.Struct(">qiibI")
_BODY = struct.Struct(">hiqqqhii")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Represents a batch as it was read."""

    base_offset: int
    leader_epoch: int
    attributes: int
    first_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: tuple[tuple[bytes | None, bytes | None], ...]
    size: int
    last_offset: int
    offsets: tuple[int, ...]  # of the records: a compaction leaves gaps
    timestamps_ms: tuple[int, ...]

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def marker(self) -> str:
        """Return `commit` or `abort` for a control batch."""
        key = self.records[0][0]
        assert self.is_control
        assert key is not None
        return {0: "abort", 1: "commit"}[struct.unpack(">hh", key)[1]]


def encode(
    *values: bytes | tuple[bytes | None, bytes | None] | None,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    timestamps_ms: Sequence[int] = (),
    headers: Sequence[tuple[bytes, bytes | None]] = (),
    corrupt: bool = False,
) -> bytes:
    """Encode a batch of values or (key, value) pairs; `corrupt` turns one bit of its checksum.

    Each record has all the headers.
    """
    pairs = [each if isinstance(each, tuple) else (None, each) for each in values]
    times = list(timestamps_ms) or [TIMESTAMP_MS] * len(pairs)
    records = b"".join(
        _record(delta, time - times[0], *pair, headers)
        for delta, (time, pair) in enumerate(zip(times, pairs, strict=True))
    )
    body = _BODY.pack(
        _TRANSACTIONAL if transactional else 0,
        len(pairs) - 1,
        times[0],
        max(times),
        producer_id,
        epoch,
        sequence,
        len(pairs),
    )
    body += records
    return _HEAD.pack(0, 9 + len(body), -1, 2, crc32c(body) ^ corrupt) + body


def decode(data: bytes | None) -> list[Batch]:
    """Decode the whole batches in these bytes; a part of one at the end is left out."""
    return list(_decode(data or b""))


def _decode(data: bytes) -> Iterator[Batch]:
    position = 0
    while position + _HEAD.size <= len(data):
        base_offset, length, leader_epoch, magic, crc = _HEAD.unpack_from(data, position)
        end = position + 12 + length
        if end > len(data):
            return
        body = data[position + _HEAD.size : end]
        assert magic == 2
        assert crc == crc32c(body), f"checksum of the batch at {base_offset}"
        attributes, last, first_ms, max_ms, pid, epoch, sequence, count = _BODY.unpack_from(body)
        assert attributes & 7 == 0, "compressed"
        found = tuple(_records(body, _BODY.size, count))
        records = tuple(pair for _, _, pair in found)
        assert last >= count - 1
        yield Batch(
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            attributes=attributes,
            first_timestamp_ms=first_ms,
            max_timestamp_ms=max_ms,
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=sequence,
            records=records,
            size=end - position,
            last_offset=base_offset + last,
            offsets=tuple(base_offset + delta for delta, _, _ in found),
            timestamps_ms=tuple(first_ms + time_delta for _, time_delta, _ in found),
        )
        position = end


def values(data: bytes | None) -> list[bytes | None]:
    """Return the values of all data records in order, without markers."""
    return [value for batch in decode(data) if not batch.is_control for _, value in batch.records]


def _record(
    delta: int,
    time_delta_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[bytes, bytes | None]],
) -> bytes:
    body = b"\0" + _varint(time_delta_ms) + _varint(delta) + _sized(key) + _sized(value)
    body += _varint(len(headers))
    body += b"".join(_sized(name) + _sized(each) for name, each in headers)
    return _varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    zigzag = shift = 0
    while True:
        byte = data[position]
        position += 1
        zigzag |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (zigzag >> 1) ^ -(zigzag & 1), position


def _records(
    body: bytes, position: int, count: int
) -> Iterator[tuple[int, int, tuple[bytes | None, bytes | None]]]:
    """Yield (offset delta, time delta, (key, value)) of each record."""
    for _ in range(count):
        size, position = _read_varint(body, position)
        end = position + size
        time_delta, position = _read_varint(body, position + 1)  # after the attributes
        delta, position = _read_varint(body, position)
        pair: list[bytes | None] = []
        for _ in range(2):
            length, position = _read_varint(body, position)
            pair.append(None if length < 0 else body[position : position + length])
            position += max(length, 0)
        yield delta, time_delta, (pair[0], pair[1])
        position = end
