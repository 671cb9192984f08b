"""Encode the batches that the broker writes itself: records of coordinators, and markers.

Their layout is in `batch`. All records of a batch have its one timestamp, and no headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct

from crc32c import crc32c

from coordinator.log.batch import (
    ATTRIBUTES_AT,
    CONTROL,
    LEADER_EPOCH,
    MARKER_KEY,
    MARKER_VALUE,
    PREFIX_BYTES,
    TRANSACTIONAL,
    RecordBatch,
    parse_header,
)
from coordinator.log.varint import VARINT

_UNCHECKED = Struct(">qiibI")  # base offset, length, leader epoch, magic, crc
_UNDER_CRC = Struct(">hiqqqhii")  # the rest of a header


def encode_marker(
    producer_id: int,
    producer_epoch: int,
    *,
    committed: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
) -> bytes:
    """Encode the control batch that ends a transaction on a partition."""
    key = MARKER_KEY.pack(0, 1 if committed else 0)
    value = MARKER_VALUE.pack(0, coordinator_epoch)
    attributes = TRANSACTIONAL | CONTROL
    producer = producer_id, producer_epoch, -1
    return _prepend_batch_header(
        encode_records([(key, value)]), 1, attributes, timestamp_ms, producer
    )


@lru_cache(64)  # a transaction ends with the same marker in each of its partitions
def build_marker(
    producer_id: int,
    producer_epoch: int,
    *,
    committed: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
) -> RecordBatch:
    """Build the control batch that ends a transaction on a partition, at base offset 0."""
    return parse_header(
        encode_marker(
            producer_id,
            producer_epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=timestamp_ms,
        )
    )


def encode_records(records: Sequence[tuple[bytes | None, bytes | None]]) -> bytes:
    """Encode (key, value) records as they stand in a batch, one after the other."""
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
    return b"".join(sized)


def encode_batch_of(
    encoded_records: bytes,
    record_count: int,
    *,
    timestamp_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    transactional: bool = False,
) -> bytes:
    """Encode a batch at base offset 0, all with one timestamp, of records encoded already.

    The broker writes its own records like this (see `encode_records`).
    """
    return _prepend_batch_header(
        encoded_records,
        record_count,
        TRANSACTIONAL if transactional else 0,
        timestamp_ms,
        (producer_id, producer_epoch, -1),
    )


def _prepend_batch_header(
    encoded_records: bytes,
    count: int,
    attributes: int,
    timestamp_ms: int,
    producer: tuple[int, int, int],
) -> bytes:
    """Return a batch: the encoded records behind a header for them.

    `producer`: id, epoch and base sequence.
    """
    if not count:
        raise ValueError("a batch has at least one record")
    checked = _UNDER_CRC.pack(attributes, count - 1, timestamp_ms, timestamp_ms, *producer, count)
    checked += encoded_records
    length = len(checked) + ATTRIBUTES_AT - PREFIX_BYTES
    head = _UNCHECKED.pack(0, length, LEADER_EPOCH, 2, crc32c(checked))
    return head + checked
