"""Find in the batches of a partition when the transaction of a record ended.

Its end is a marker, a control batch of the same producer, whose timestamp is the clock of the
partition's leader before the marker was appended. Until then no reader of committed records is
given the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from struct import Struct
from typing import NamedTuple

_PREFIX = Struct(">qi4xb")  # base offset, length of what follows, leader epoch, magic
_LENGTH_AT, _HEADER_BYTES, _MAGIC = 12, 61, 2
_ATTRIBUTES, _SPAN, _TIME, _PRODUCER = Struct(">h"), Struct(">i"), Struct(">q"), Struct(">q")
_ATTRIBUTES_AT, _SPAN_AT, _TIME_AT, _PRODUCER_AT = 21, 23, 35, 43
_TRANSACTIONAL, _CONTROL = 0x10, 0x20


class _TransactionalBatch(NamedTuple):
    """Represents the header of a batch, as far as it tells of transactions."""

    base_offset: int
    last_offset: int
    attributes: int
    timestamp_ms: int
    producer_id: int


class NoTransactionEnd(StrEnum):
    """Names why nothing at an offset has a transaction whose end is known, in words for several."""

    MARKER = "stand behind the end of a transaction"
    WITHOUT_TRANSACTION = "stand behind a record that is in no transaction"
    OUT_OF_REACH = "stand behind a record that is gone, or whose transaction's end is far behind it"


def find_transaction_end(data: bytes, offset: int) -> int | NoTransactionEnd:
    """Return when the transaction of the record at `offset` ended, in ms since the epoch.

    `data` are the batches of a fetch from `offset` on. The reason is returned where the record is
    in no transaction, or is gone, or the marker is not in the data.
    """
    batches = _parse_batches(data)
    for batch in batches:
        if not batch.base_offset <= offset <= batch.last_offset:
            return NoTransactionEnd.OUT_OF_REACH
        if batch.attributes & _CONTROL:
            return NoTransactionEnd.MARKER
        if not batch.attributes & _TRANSACTIONAL:
            return NoTransactionEnd.WITHOUT_TRANSACTION
        for later in batches:
            if later.attributes & _CONTROL and later.producer_id == batch.producer_id:
                return later.timestamp_ms
    return NoTransactionEnd.OUT_OF_REACH


def _parse_batches(data: bytes) -> Iterator[_TransactionalBatch]:
    """Yield the header of each batch that is there completely; another format ends the data."""
    at = 0
    while at + _HEADER_BYTES <= len(data):
        first, length, magic = _PREFIX.unpack_from(data, at)
        if magic != _MAGIC or length <= 0 or at + _LENGTH_AT + length > len(data):
            return
        (attributes,) = _ATTRIBUTES.unpack_from(data, at + _ATTRIBUTES_AT)
        (span,) = _SPAN.unpack_from(data, at + _SPAN_AT)
        (time_ms,) = _TIME.unpack_from(data, at + _TIME_AT)
        (producer,) = _PRODUCER.unpack_from(data, at + _PRODUCER_AT)
        yield _TransactionalBatch(first, first + span, attributes, time_ms, producer)
        at += _LENGTH_AT + length
