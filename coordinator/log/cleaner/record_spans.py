"""Find the records of a batch as spans of bytes, with the few facts that the cleaner needs.

Most records that are cleaned stay, byte for byte. So a record is not decoded: its key is looked at,
and whether it has a value. The loop is the cleaner's hottest; varints of one byte are read in
place.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from coordinator.log.batch import COMPRESSION_MASK, HEADER_BYTES, RecordBatch
from coordinator.log.cleaner.steps import BACKGROUND_BYTES_MIN, Steps, run_in_background
from coordinator.log.compression import decompress_records
from coordinator.log.varint import VARINT, NextPosition, read_varint

_RECORDS_A_STEP = 256

EncodedRecord: TypeAlias = bytes
TimestampDelta: TypeAlias = int  # milliseconds after the base timestamp of the batch
DecompressedRecords: TypeAlias = bytes


class RecordSpan(NamedTuple):
    """Represents one record by its position in the bytes, its key and whether it has a value."""

    start: int
    end: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def read_spans(data: bytes, position: int, count: int) -> tuple[list[RecordSpan], NextPosition]:
    """Find `count` records from a position on, and return the position after them, too.

    Raises: ValueError or IndexError where the bytes are no records.
    """
    spans = []
    for _ in range(count):
        start = position
        byte = data[position]
        if byte < 0x80:
            length, position = byte >> 1, position + 1
        else:
            length, position = read_varint(data, position)
        end = position + length
        position += 1  # attributes
        while data[position] > 0x7F:  # timestamp delta
            position += 1
        byte = data[position + 1]
        if byte < 0x80:
            offset_delta, position = byte >> 1, position + 2
        else:
            offset_delta, position = read_varint(data, position + 1)
        byte = data[position]
        key = None
        if byte & 1:  # the lowest bit is the sign: no key
            position += 1
        else:
            if byte < 0x80:
                size, position = byte >> 1, position + 1
            else:
                size, position = read_varint(data, position)
            key = data[position : position + size]
            position += size
        if not position < end <= len(data):
            raise ValueError(f"a record of {length} bytes at {start} of {len(data)}")
        spans.append(RecordSpan(start, end, offset_delta, key, not data[position] & 1))
        position = end
    return spans, position


def rebase_record(
    data: bytes, span: RecordSpan, shift_ms: int, shift_offset: int
) -> tuple[EncodedRecord, TimestampDelta]:
    """Encode a record for a batch with a later base; return its new timestamp delta, too.

    The base timestamp is later by `shift_ms`, the base offset higher by `shift_offset`.
    """
    _, start = read_varint(data, span.start)
    delta_ms, at = read_varint(data, start + 1)
    if not shift_ms and not shift_offset:
        return data[span.start : span.end], delta_ms
    _, rest = read_varint(data, at)
    attributes = data[start : start + 1]
    deltas = VARINT[delta_ms - shift_ms] + VARINT[span.offset_delta - shift_offset]
    content = attributes + deltas + data[rest : span.end]
    return VARINT[len(content)] + content, delta_ms - shift_ms


def read_batch_spans(batch: RecordBatch) -> Steps[tuple[DecompressedRecords, list[RecordSpan]]]:
    """Decompress a batch; return its bytes and the spans of its records in them.

    Raises: ValueError or IndexError where the bytes are no records.
    """
    data = bytes(batch.data)[HEADER_BYTES:]
    codec = batch.attributes & COMPRESSION_MASK
    if codec and len(data) >= BACKGROUND_BYTES_MIN:
        packed = data
        data = yield from run_in_background(lambda: bytes(decompress_records(codec, packed)))
    elif codec:
        data = bytes(decompress_records(codec, data))
    spans: list[RecordSpan] = []
    at = 0
    while len(spans) < batch.record_count:
        count = min(_RECORDS_A_STEP, batch.record_count - len(spans))
        more, at = read_spans(data, at, count)
        spans += more
        yield None
    return data, spans
