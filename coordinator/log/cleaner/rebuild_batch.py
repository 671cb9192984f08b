"""Encode a batch again that has lost some of its records, or all.

It keeps its base and its last offset, and so its sequences; its producer, its codec, the records
that stay with their offsets and timestamps. A delete horizon that it is given takes the place of
the base timestamp, to which the records' timestamps are relative, so they are written anew and may
take more room. If the batch grows beyond `max.message.bytes` by that, it is divided, each part with
the offsets and sequences that are its own. (Kafka lets it grow.)
Source: MemoryRecords.buildRetainedRecordsInto, DefaultRecordBatch.writeEmptyHeader.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from crc32c import crc32c

from coordinator.log.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    RecordBatch,
)
from coordinator.log.cleaner.record_spans import RecordSpan, rebase_record
from coordinator.log.cleaner.steps import BACKGROUND_BYTES_MIN, Steps, run_in_background
from coordinator.log.compression import Bytes, compress_records

_RECORDS_A_STEP = 128
_PREFIX_BYTES = 12
_CRC = Struct(">I")
_CRC_AT = 17
_ATTRIBUTES_AT = 21
_SEQUENCES = 2**31


def build_empty_batch(batch: RecordBatch) -> bytes:
    """Encode a batch without records that keeps offsets, producer, sequences, kind and time."""
    attributes = batch.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON)
    return _encode_with_checksum(
        batch._replace(attributes=attributes, base_timestamp_ms=-1, record_count=0), b""
    )


def rebuild_batches(
    batch: RecordBatch,
    data: bytes,
    spans: list[RecordSpan],
    delete_horizon_ms: int | None,
    bytes_max: int,
) -> Steps[list[bytes]]:
    """Encode a batch again with only these of its records, which are in `data`.

    Several batches are returned if it would grow beyond `bytes_max`. `delete_horizon_ms` is the
    delete horizon to be set; None leaves the one that is there.
    """
    head = batch
    if delete_horizon_ms is not None:
        head = batch._replace(
            attributes=batch.attributes | DELETE_HORIZON, base_timestamp_ms=delete_horizon_ms
        )
    shift_ms = head.base_timestamp_ms - batch.base_timestamp_ms
    limit = max(bytes_max, batch.size)
    return (
        yield from _rebuild_whole_or_in_halves(
            head, data, spans, 0, batch.last_offset_delta, shift_ms, limit
        )
    )


def _rebuild_whole_or_in_halves(
    header: RecordBatch,
    data: bytes,
    spans: list[RecordSpan],
    first_delta: int,
    last_delta: int,
    shift_ms: int,
    bytes_max: int,
) -> Steps[list[bytes]]:
    """Encode the records of an offset range as one batch, or as halves if that is too large."""
    made = yield from _rebuild_part(header, data, spans, first_delta, last_delta, shift_ms)
    if len(made) <= bytes_max or len(spans) == 1:
        return [made]
    middle = len(spans) // 2
    cut = spans[middle].offset_delta
    halves = ((spans[:middle], first_delta, cut - 1), (spans[middle:], cut, last_delta))
    parts = []
    for half, first, last in halves:
        parts += yield from _rebuild_whole_or_in_halves(
            header, data, half, first, last, shift_ms, bytes_max
        )
    return parts


def _rebuild_part(
    header: RecordBatch,
    data: bytes,
    spans: Sequence[RecordSpan],
    first_delta: int,
    last_delta: int,
    shift_ms: int,
) -> Steps[bytes]:
    """Encode records as one batch with these first and last offset deltas."""
    records = []
    deltas_ms = []
    for start in range(0, len(spans), _RECORDS_A_STEP):
        for span in spans[start : start + _RECORDS_A_STEP]:
            record, delta_ms = rebase_record(data, span, shift_ms, first_delta)
            records.append(record)
            deltas_ms.append(delta_ms)
        yield None
    max_timestamp_ms = header.max_timestamp_ms
    if not header.is_log_append_time:
        max_timestamp_ms = header.base_timestamp_ms + max(deltas_ms)
    sequence = header.base_sequence
    if sequence >= 0:
        sequence = (sequence + first_delta) % _SEQUENCES
    body: Bytes = b"".join(records)
    yield None
    codec = header.attributes & COMPRESSION_MASK
    if codec and len(body) >= BACKGROUND_BYTES_MIN:
        body = yield from run_in_background(lambda: compress_records(codec, body))
    else:
        body = compress_records(codec, body)
    return _encode_with_checksum(
        header._replace(
            base_offset=header.base_offset + first_delta,
            last_offset_delta=last_delta - first_delta,
            max_timestamp_ms=max_timestamp_ms,
            base_sequence=sequence,
            record_count=len(spans),
        ),
        body,
    )


def _encode_with_checksum(header: RecordBatch, body: Bytes) -> bytes:
    """Encode a header with these fields, its length and checksum computed, and the body."""
    *fields, _ = header._replace(length=HEADER_BYTES - _PREFIX_BYTES + len(body), crc=0)
    out = bytearray(HEADER.pack(*fields))
    out += body
    _CRC.pack_into(out, _CRC_AT, crc32c(memoryview(out)[_ATTRIBUTES_AT:]))
    return bytes(out)
