"""A record batch in Kafka's v2 format: the unit that is produced, stored and fetched.

The log treats a batch as a header of 61 bytes and an opaque rest. A produced batch is checked
(`produced`), its offset is written over the client's (`rewritten`), and the bytes go to disk
and later to consumers as they are, so its cost does not depend on the number of records in it.
The broker opens batches of its own making (`encode_batch`, `encode_marker`, `Batch.records`), and a
client's to look for a time or for keys in it.

    base offset int64 | length int32 | leader epoch int32 | magic int8 | crc uint32
    from here under the crc: attributes int16 | last offset delta int32 | base, max timestamp int64
    producer id int64 | producer epoch int16 | base sequence int32 | record count int32 | records

`length` counts what follows it. Trace of a Produce: api/produce -> log/partition -> here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from coordinator.log.compression import decompress
from coordinator.log.varint import VARINT, read_varint

HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = 61
assert HEADER.size == HEADER_BYTES
_PREFIX = Struct(">qi")  # base offset, length: enough to step from batch to batch
PREFIX_BYTES = 12
_ASSIGNED = Struct(">qii")  # base offset, length, leader epoch
_UNCHECKED = Struct(">qiibI")
_CRC = Struct(">I")
_UNDER_CRC = Struct(">hiqqqhii")
_MAGIC_AT = 16
_CRC_AT = 17
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35
_RECORD_BYTES_MIN = 6  # attributes, two deltas, three lengths
_LEADER_EPOCH = 0  # one broker, never another leader

COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
DELETE_HORIZON = 0x40
_SEQUENCES = 2**31

_MARKER_KEY = Struct(">hh")
_MARKER_VALUE = Struct(">hi")


Bytes = bytes | bytearray | memoryview


class LogRecord(NamedTuple):
    """One record of a batch, with its absolute offset and timestamp."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Batch(NamedTuple):
    """The header of one batch field by field, and the bytes of the batch."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    data: Bytes  # of this batch alone

    @property
    def size(self) -> int:
        """Bytes of the whole batch, its first 12 included."""
        return PREFIX_BYTES + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequences wrap to 0 after 2^31 - 1."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCES

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on its tombstones or its marker may be cleaned away; None: no cleaning has met
        them yet. It has the base timestamp's place in the header (KIP-534)."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON else None

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & _LOG_APPEND_TIME)

    def is_intact(self) -> bool:
        """Whether the bytes are those that the checksum was made of."""
        return crc32c(memoryview(self.data)[_ATTRIBUTES_AT:]) == self.crc

    def records(self) -> Iterator[LogRecord]:
        """The records in order, decompressed if need be. ValueError or IndexError where the bytes
        are no records, or more than is made room for (see `compression`)."""
        if not self.record_count:  # an empty batch, which the log cleaner leaves
            return
        data, at = self.data, HEADER_BYTES
        codec = self.attributes & COMPRESSION_MASK
        if codec:
            data, at = decompress(codec, memoryview(data)[HEADER_BYTES:]), 0
        for _ in range(self.record_count):
            record, at = self._record(data, at)
            yield record

    def _record(self, data: Bytes, at: int) -> tuple[LogRecord, int]:
        length, at = read_varint(data, at)
        end = at + length
        if length < _RECORD_BYTES_MIN or end > len(data):
            raise ValueError(f"a record of {length} bytes at {at} of {len(data)}")
        timestamp_delta, at = read_varint(data, at + 1)  # one unused byte of attributes
        offset_delta, at = read_varint(data, at)
        key, at = _read_bytes(data, at)
        value, at = _read_bytes(data, at)
        header_count, at = read_varint(data, at)
        headers = []
        for _ in range(header_count):
            name, at = _read_bytes(data, at)
            content, at = _read_bytes(data, at)
            headers.append(((name or b"").decode(), content))
        timestamp_ms = (
            self.max_timestamp_ms
            if self.is_log_append_time
            else self.base_timestamp_ms + timestamp_delta
        )
        offset = self.base_offset + offset_delta
        return LogRecord(offset, timestamp_ms, key, value, tuple(headers)), end

    def marker(self) -> tuple[bool, int]:
        """Return what a marker says: whether its transaction was committed, and the coordinator's
        epoch. Raises ValueError if it says neither."""
        try:
            record = next(self.records())
            _, kind = _MARKER_KEY.unpack_from(record.key or b"")
            _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"")
        except (IndexError, StopIteration, struct.error) as error:
            raise ValueError(f"the marker at offset {self.base_offset} is damaged") from error
        return kind == 1, coordinator_epoch


def _read_bytes(data: Bytes, at: int) -> tuple[bytes | None, int]:
    length, at = read_varint(data, at)
    if length < 0:
        return None, at
    return bytes(data[at : at + length]), at + length


def parse_header(data: Bytes, at: int = 0) -> Batch:
    """The batch that starts at `at`; the caller knows that it is all there."""
    fields = HEADER.unpack_from(data, at)
    size = PREFIX_BYTES + fields[1]
    own = data if at == 0 and len(data) == size else data[at : at + size]
    return Batch._make((*fields, own))


def batches(data: bytes) -> Iterator[Batch]:
    """The whole batches in `data`, in order; a piece of one at the end is left out.

    ValueError where a batch says that it is shorter than its header: nobody would get past it.
    """
    view = memoryview(data)
    at = 0
    while at + HEADER_BYTES <= len(data):
        size = PREFIX_BYTES + _PREFIX.unpack_from(data, at)[1]
        if size < HEADER_BYTES:
            raise ValueError(f"a batch of {size} bytes at {at} of {len(data)}")
        if at + size > len(data):
            return
        yield parse_header(view, at)
        at += size


def is_transactional(data: Bytes) -> bool:
    """Whether what may be a batch says that it is part of a transaction."""
    return (
        len(data) > _ATTRIBUTES_AT + 1
        and data[_MAGIC_AT] == 2
        and bool(data[_ATTRIBUTES_AT + 1] & _TRANSACTIONAL)
    )


def size_at(data: Bytes, at: int) -> int:
    """Bytes of the batch that starts at `at`, of which at least 12 bytes are there."""
    length: int = _PREFIX.unpack_from(data, at)[1]
    return PREFIX_BYTES + length


def rewritten(data: Bytes, base_offset: int, log_append_time_ms: int | None) -> bytearray:
    """A copy with the offset that the log gives it; a time given becomes every record's."""
    out = bytearray(data)
    _ASSIGNED.pack_into(out, 0, base_offset, len(out) - PREFIX_BYTES, _LEADER_EPOCH)
    if log_append_time_ms is not None:
        out[_ATTRIBUTES_AT + 1] |= _LOG_APPEND_TIME
        out[_MAX_TIMESTAMP_AT : _MAX_TIMESTAMP_AT + 8] = log_append_time_ms.to_bytes(8, "big")
    elif out[_ATTRIBUTES_AT + 1] & _LOG_APPEND_TIME:  # a producer has no say in this
        out[_ATTRIBUTES_AT + 1] ^= _LOG_APPEND_TIME
    else:
        return out
    _CRC.pack_into(out, _CRC_AT, crc32c(memoryview(out)[_ATTRIBUTES_AT:]))
    return out


def encode_batch(
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    timestamp_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """A batch of the broker's own (key, value) records, at base offset 0, all of one timestamp."""
    return _encode(
        records,
        _TRANSACTIONAL if transactional else 0,
        timestamp_ms,
        (producer_id, producer_epoch, base_sequence),
    )


def encode_marker(
    producer_id: int,
    producer_epoch: int,
    *,
    committed: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
) -> bytes:
    """The control batch that ends a transaction on a partition."""
    key = _MARKER_KEY.pack(0, 1 if committed else 0)
    value = _MARKER_VALUE.pack(0, coordinator_epoch)
    attributes = _TRANSACTIONAL | _CONTROL
    return _encode([(key, value)], attributes, timestamp_ms, (producer_id, producer_epoch, -1))


def _encode(
    records: Sequence[tuple[bytes | None, bytes | None]],
    attributes: int,
    timestamp_ms: int,
    producer: tuple[int, int, int],
) -> bytes:
    if not records:
        raise ValueError("a batch has at least one record")
    sized = []
    for delta, (key, value) in enumerate(records):
        # Attributes, timestamp delta 0, offset delta; key and value with their lengths; no headers.
        record = b"\0\0%b%b%b%b%b\0" % (
            VARINT[delta],
            VARINT[-1 if key is None else len(key)],
            key or b"",
            VARINT[-1 if value is None else len(value)],
            value or b"",
        )
        sized.append(VARINT[len(record)])
        sized.append(record)
    count = len(records)
    checked = _UNDER_CRC.pack(attributes, count - 1, timestamp_ms, timestamp_ms, *producer, count)
    checked += b"".join(sized)
    length = len(checked) + _ATTRIBUTES_AT - PREFIX_BYTES
    head = _UNCHECKED.pack(0, length, _LEADER_EPOCH, 2, crc32c(checked))
    return head + checked
