"""Validate a produced batch: it has to be whole, of format 2, and consistent in itself.

    the bytes of a partition in a request                     code
    no whole batch                                            INVALID_RECORD
    a length below 14, a format that doesn't exist            CORRUPT_MESSAGE
    formats 0 and 1; a second whole batch                     INVALID_RECORD
    larger than the topic allows                              MESSAGE_TOO_LARGE
    no room for a header, a wrong checksum                    CORRUPT_MESSAGE
    offsets that don't begin at 0 or don't fit the count,     INVALID_RECORD
    a control batch, a producer without a sequence,
    a record without a key for a compacted topic

Bytes behind a whole batch that are no batch are dropped, as Kafka does it. Not as in Kafka: records
are opened only where the topic is compacted, so the body of a batch may hold any bytes; a
compression that doesn't exist is INVALID_RECORD, where Kafka answers UNKNOWN_SERVER_ERROR.
Source: ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.errors import Code, Refused
from coordinator.log.batch import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    PREFIX_BYTES,
    RecordBatch,
    parse_header,
    read_batch_size_at,
)
from coordinator.log.compression import decompress_records
from coordinator.log.settings import LogSettings
from coordinator.log.varint import read_varint

_MAGIC_AT = 16
_LENGTH_MIN = 14  # bytes behind the length field, in the oldest format
_MAGIC_MAX = 2
_COMPRESSION_CODECS = 5  # none, gzip, snappy, lz4, zstd


class RejectedRecords(Refused):
    """Reports a batch refused for some of its records, as (index in the batch, what is wrong).

    Kafka: `RecordValidationException`.
    """

    def __init__(self, code: Code, errors: Sequence[tuple[int, str]]) -> None:
        super().__init__(code, f"{len(errors)} records are refused; {errors[0][1]}")
        self.errors = errors


def parse_single_batch(data: bytes | None) -> RecordBatch:
    """Parse the header of the single batch in a partition's bytes; its fields are not checked yet.

    Raises: Refused (INVALID_RECORD, CORRUPT_MESSAGE).
    """
    data = data or b""
    size = _read_whole_batch_size(data, 0)
    if size is None:
        raise Refused(Code.INVALID_RECORD, f"no batch in {len(data)} bytes")
    if data[_MAGIC_AT] != _MAGIC_MAX:
        raise Refused(Code.INVALID_RECORD, f"format {data[_MAGIC_AT]}; only 2 is taken")
    if size < HEADER_BYTES:
        raise Refused(Code.CORRUPT_MESSAGE, f"a batch of {size} bytes")
    if size < len(data):
        if _read_whole_batch_size(data, size) is not None:
            raise Refused(Code.INVALID_RECORD, "more than one batch for a partition")
        data = data[:size]
    return parse_header(data)


def _read_whole_batch_size(data: bytes, position: int) -> int | None:
    """Return the size of the batch at this position in bytes; None if it isn't all there.

    Raises: Refused (CORRUPT_MESSAGE).
    """
    left = len(data) - position
    if left < PREFIX_BYTES:
        return None
    size = read_batch_size_at(data, position)
    if size < PREFIX_BYTES + _LENGTH_MIN:
        raise Refused(Code.CORRUPT_MESSAGE, f"a batch of {size} bytes")
    if left <= _MAGIC_AT:
        return None
    if data[position + _MAGIC_AT] > _MAGIC_MAX:
        raise Refused(Code.CORRUPT_MESSAGE, f"format {data[position + _MAGIC_AT]} doesn't exist")
    return size if size <= left else None


def validate_produced_batch(batch: RecordBatch, settings: LogSettings) -> None:
    """Raise Refused if a produced batch isn't fit for a log with these settings.

    Raises: Refused (INVALID_RECORD, MESSAGE_TOO_LARGE, CORRUPT_MESSAGE).
    """
    if batch.base_offset != 0:
        raise Refused(Code.INVALID_RECORD, f"base offset {batch.base_offset}, not 0")
    if batch.size > settings.max_message_bytes:
        raise Refused(
            Code.MESSAGE_TOO_LARGE, f"{batch.size} bytes; at most {settings.max_message_bytes}"
        )
    if not batch.is_intact():
        raise Refused(Code.CORRUPT_MESSAGE, f"checksum is not {batch.crc:#010x}")
    _validate_header(batch)
    if settings.is_compacted:
        _validate_keys(batch)


def _validate_header(batch: RecordBatch) -> None:
    """Raise Refused (INVALID_RECORD) if header fields of a produced batch contradict each other."""
    if batch.record_count < 1 or batch.record_count != batch.last_offset_delta + 1:
        raise Refused(
            Code.INVALID_RECORD,
            f"{batch.record_count} records, last offset delta {batch.last_offset_delta}",
        )
    if batch.is_control:
        raise Refused(Code.INVALID_RECORD, "clients don't write control batches")
    if batch.attributes & COMPRESSION_MASK >= _COMPRESSION_CODECS:
        raise Refused(Code.INVALID_RECORD, f"attributes {batch.attributes:#x}: unknown compression")
    if batch.producer_id < 0:
        if batch.is_transactional:
            raise Refused(Code.INVALID_RECORD, "transactional, but without a producer id")
    elif batch.producer_epoch < 0 or batch.base_sequence < 0:
        raise Refused(
            Code.INVALID_RECORD,
            f"epoch {batch.producer_epoch}, sequence {batch.base_sequence} with a producer id",
        )


def _validate_keys(batch: RecordBatch) -> None:
    """Raise RejectedRecords (INVALID_RECORD) if a record of the batch has no key."""
    try:
        keyless = _find_keyless_records(batch)
    except (ValueError, IndexError) as error:
        raise Refused(Code.INVALID_RECORD, f"the records can't be read: {error}") from error
    if keyless:
        message = "a record of a compacted topic must have a key"
        raise RejectedRecords(Code.INVALID_RECORD, [(index, message) for index in keyless])


def _find_keyless_records(batch: RecordBatch) -> list[int]:
    """Return the indexes of the records that have no key.

    All that is read of a record is its length and, past its attributes and two numbers, the first
    byte of the key's length, whose lowest bit is its sign: half a microsecond a record. Raises:
    ValueError or IndexError where the bytes are no records.
    """
    codec = batch.attributes & COMPRESSION_MASK
    data = memoryview(batch.data)[HEADER_BYTES:]
    if codec:
        data = memoryview(decompress_records(codec, data))
    found = []
    at = 0
    for index in range(batch.record_count):
        length = data[at]
        if length & 0x81:  # longer than one byte, or negative
            length, at = read_varint(data, at)
        else:
            length, at = length >> 1, at + 1
        end = at + length
        if length < 0 or end > len(data):
            raise ValueError(f"a record of {length} bytes at {at} of {len(data)}")
        at += 1
        while data[at] & 0x80:
            at += 1
        at += 1
        while data[at] & 0x80:
            at += 1
        if data[at + 1] & 1:
            found.append(index)
        at = end
    if at != len(data):
        # What follows the records that the header counts would be lost with the next compaction.
        raise ValueError(f"{len(data) - at} bytes after the last of {batch.record_count} records")
    return found


def create_timestamp_refusal(
    batch: RecordBatch, refused: Refused, earliest_ms: int, latest_ms: int
) -> Refused:
    """Return the refusal of a batch for its timestamps, naming the records out of range.

    It is `refused` itself if they can't be named.
    """
    try:
        errors = [
            (index, f"timestamp {record.timestamp_ms} is not in {earliest_ms}..{latest_ms}")
            for index, record in enumerate(batch.iterate_records())
            if record.timestamp_ms != -1 and not earliest_ms <= record.timestamp_ms <= latest_ms
        ]
    except (ValueError, IndexError):
        errors = []
    return RejectedRecords(refused.code, errors) if errors else refused
