"""Encode record batches as the broker encodes its own, with a producer's sequence if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack_into

from crc32c import crc32c

from coordinator.log.batch_encoding import encode_batch_of, encode_records

_CRC_AT, _CHECKED_AT, _SEQUENCE_AT = 17, 21, 53  # in a batch


def encode_batch(
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    timestamp_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """Encode (key, value) records as a batch at base offset 0, all with one timestamp."""
    batch = bytearray(
        encode_batch_of(
            encode_records(records),
            len(records),
            timestamp_ms=timestamp_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=transactional,
        )
    )
    pack_into(">i", batch, _SEQUENCE_AT, base_sequence)
    pack_into(">I", batch, _CRC_AT, crc32c(batch[_CHECKED_AT:]))
    return bytes(batch)
