"""Parse and check record batches of Kafka's v2 format.

A batch is the unit that is produced, stored and fetched. The log treats it as a header of 61 bytes
and an opaque rest. A produced batch is checked (`batch_validation`), its offset is written over the
client's (`copy_with_offset`), and the bytes go to disk and later to consumers as they are, so its
cost does not depend on the number of records in it. The broker opens batches of its own making
(`batch_encoding`, `RecordBatch.iterate_records`), and a client's to look for a time or for keys in
it.

    base offset int64 | length int32 | leader epoch int32 | magic int8 | crc uint32
    from here under the crc: attributes int16 | last offset delta int32 | base, max timestamp int64
    producer id int64 | producer epoch int16 | base sequence int32 | record count int32 | records

`length` counts what follows it.
Trace of a Produce: api/produce -> log/partition -> here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from struct import Struct
from typing import Any, NamedTuple

from crc32c import crc32c

from coordinator.log.compression import decompress_records
from coordinator.log.varint import NextPosition, read_varint

HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = 61
assert HEADER.size == HEADER_BYTES
_PREFIX = Struct(">qi")  # base offset, length: enough to step from batch to batch
PREFIX_BYTES = 12
_ASSIGNED = Struct(">qii")  # base offset, length, leader epoch
_CRC = Struct(">I")
_MAGIC_AT = 16
_CRC_AT = 17
ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35
_RECORD_BYTES_MIN = 6  # attributes, two deltas, three lengths
LEADER_EPOCH = 0  # one broker, never another leader

COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
_SEQUENCES = 2**31

MARKER_KEY = Struct(">hh")
MARKER_VALUE = Struct(">hi")


Bytes = bytes | bytearray | memoryview


class LogRecord(NamedTuple):
    """Represents one record of a batch, with its absolute offset and timestamp."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class EndTransactionMarker(NamedTuple):
    """Represents the content of the marker that ends a transaction, with its outcome."""

    is_commit: bool
    coordinator_epoch: int


class RecordBatch(NamedTuple):
    """Represents one record batch: the fields of its header, and its bytes."""

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
    data: Bytes  # the bytes of this batch alone

    @property
    def size(self) -> int:
        """Return the size of the whole batch in bytes, base offset and length included."""
        return PREFIX_BYTES + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Return the sequence number of the last record, or -1 if the batch has none.

        Sequences wrap to 0 after 2^31 - 1.
        """
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCES

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Return the time from which its tombstones or marker may be removed; None if unset.

        No cleaning has met them yet if it is unset. It takes the base timestamp's place in the
        header (KIP-534).
        """
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON else None

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & _LOG_APPEND_TIME)

    def is_intact(self) -> bool:
        """Return whether the bytes match the batch's checksum."""
        return crc32c(memoryview(self.data)[ATTRIBUTES_AT:]) == self.crc

    def iterate_records(self) -> Iterator[LogRecord]:
        """Yield the records in order, decompressed if need be.

        Raises: ValueError or IndexError where the bytes are no records, or more than room is made
        for (see `compression`).
        """
        if not self.record_count:  # the log cleaner leaves empty batches
            return
        data, at = self.data, HEADER_BYTES
        codec = self.attributes & COMPRESSION_MASK
        if codec:
            data, at = decompress_records(codec, memoryview(data)[HEADER_BYTES:]), 0
        for _ in range(self.record_count):
            record, at = self._decode_record(data, at)
            yield record

    def _decode_record(self, data: Bytes, position: int) -> tuple[LogRecord, NextPosition]:
        """Decode the record at this position; also return the position after it."""
        length, position = read_varint(data, position)
        end = position + length
        if length < _RECORD_BYTES_MIN or end > len(data):
            raise ValueError(f"a record of {length} bytes at {position} of {len(data)}")
        timestamp_delta, position = read_varint(data, position + 1)  # one unused byte of attributes
        offset_delta, position = read_varint(data, position)
        key, position = _read_nullable_bytes(data, position)
        value, position = _read_nullable_bytes(data, position)
        header_count, position = read_varint(data, position)
        headers = []
        for _ in range(header_count):
            name, position = _read_nullable_bytes(data, position)
            content, position = _read_nullable_bytes(data, position)
            headers.append(((name or b"").decode(), content))
        timestamp_ms = (
            self.max_timestamp_ms
            if self.is_log_append_time
            else self.base_timestamp_ms + timestamp_delta
        )
        offset = self.base_offset + offset_delta
        return LogRecord(offset, timestamp_ms, key, value, tuple(headers)), end

    def decode_marker(self) -> EndTransactionMarker:
        """Decode the content of a transaction's marker.

        Raises: ValueError if the bytes are no marker.
        """
        try:
            return _decode_marker_content(
                bytes(self.data[HEADER_BYTES:]), self.attributes, self.record_count
            )
        except (IndexError, StopIteration, struct.error) as error:
            raise ValueError(f"the marker at offset {self.base_offset} is damaged") from error


@lru_cache(64)  # nearly all markers of a log have one of a few contents
def _decode_marker_content(
    content: bytes, attributes: int, record_count: int
) -> EndTransactionMarker:
    """Decode the record of a marker's batch (see `RecordBatch.decode_marker`)."""
    data = bytes(HEADER_BYTES) + content
    batch = RecordBatch(0, len(data), 0, 2, 0, attributes, 0, 0, 0, -1, -1, -1, record_count, data)
    record = next(batch.iterate_records())
    _, kind = MARKER_KEY.unpack_from(record.key or b"")
    _, coordinator_epoch = MARKER_VALUE.unpack_from(record.value or b"")
    return EndTransactionMarker(kind == 1, coordinator_epoch)


# Does the same as `RecordBatch(...)` without its constructor, which is slower.
_create_record_batch: Callable[[tuple[Any, ...]], RecordBatch] = partial(tuple.__new__, RecordBatch)


def _read_nullable_bytes(data: Bytes, position: int) -> tuple[bytes | None, NextPosition]:
    """Read bytes prefixed with their varint length, None for -1; return the next position, too."""
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    return bytes(data[position : position + length]), position + length


def parse_header(data: Bytes, position: int = 0) -> RecordBatch:
    """Parse the header of the batch that starts at this position.

    At least the header has to be there; `data` of the result is what there is of the batch.
    """
    fields = HEADER.unpack_from(data, position)
    size = PREFIX_BYTES + fields[1]
    own = data if position == 0 and len(data) == size else data[position : position + size]
    return _create_record_batch((*fields, own))


def iterate_batches(data: bytes) -> Iterator[RecordBatch]:
    """Yield the whole batches in `data`, in order; a piece of one at the end is left out.

    Raises: ValueError where a batch claims to be shorter than its header: nobody would get past it.
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


def is_transactional_batch(data: Bytes) -> bool:
    """Return whether bytes that may be a batch are marked as part of a transaction."""
    return (
        len(data) > ATTRIBUTES_AT + 1
        and data[_MAGIC_AT] == 2
        and bool(data[ATTRIBUTES_AT + 1] & TRANSACTIONAL)
    )


def read_batch_size_at(data: Bytes, position: int) -> int:
    """Return the size in bytes of the batch that starts at this position.

    At least its first 12 bytes have to be there.
    """
    length: int = _PREFIX.unpack_from(data, position)[1]
    return PREFIX_BYTES + length


def copy_with_offset(data: Bytes, base_offset: int, log_append_time_ms: int | None) -> bytearray:
    """Copy a batch with the offset that the log gives it, and with its append time if there is one.

    A `log_append_time_ms` becomes the timestamp of every record; None leaves the producer's.
    """
    out = bytearray(data)
    _ASSIGNED.pack_into(out, 0, base_offset, len(out) - PREFIX_BYTES, LEADER_EPOCH)
    if log_append_time_ms is not None:
        out[ATTRIBUTES_AT + 1] |= _LOG_APPEND_TIME
        out[_MAX_TIMESTAMP_AT : _MAX_TIMESTAMP_AT + 8] = log_append_time_ms.to_bytes(8, "big")
    elif out[ATTRIBUTES_AT + 1] & _LOG_APPEND_TIME:  # producers may not claim the log's time
        out[ATTRIBUTES_AT + 1] ^= _LOG_APPEND_TIME
    else:
        return out
    _CRC.pack_into(out, _CRC_AT, crc32c(memoryview(out)[ATTRIBUTES_AT:]))
    return out
