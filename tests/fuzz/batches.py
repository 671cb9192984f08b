"""Make batches as a hostile producer does: wrong inside, with the right length and checksum."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from crc32c import crc32c

from coordinator.log.batch import HEADER_BYTES, PREFIX_BYTES
from coordinator.log.compression import CompressionType, compress_records
from tests.fuzz.mutations import mutated
from tests.own_batches import encode_batch
from tests.unit.coordinator.log.logs import NOW_MS

_CRC_AT, _ATTRIBUTES_AT = 17, 21
_SOUND_SHARE = 0.9  # of the batches have their length and checksum put right


def sealed(batch: bytes) -> bytes:
    """Return the batch with the length and the checksum that its bytes ask for."""
    if len(batch) < HEADER_BYTES:
        return batch
    length = (len(batch) - PREFIX_BYTES).to_bytes(4, "big")
    checksum = crc32c(batch[_ATTRIBUTES_AT:]).to_bytes(4, "big")
    return batch[:8] + length + batch[12:_CRC_AT] + checksum + batch[_ATTRIBUTES_AT:]


def with_records(codec: CompressionType, data: bytes, count: int = 1) -> bytes:
    """Return a batch that says it has `count` records, with these bytes for them, compressed."""
    head = bytearray(encode_batch([(b"k", b"v")], timestamp_ms=NOW_MS)[:HEADER_BYTES])
    head[_ATTRIBUTES_AT + 1] = codec
    head[23:27] = (count - 1).to_bytes(4, "big")
    head[57:61] = count.to_bytes(4, "big")
    return sealed(bytes(head) + bytes(compress_records(codec, data)))


def _seeds() -> Iterator[bytes]:
    records = [(b"key", b"value"), (b"", b"x" * 100), (b"k", None)]
    plain = encode_batch(records, timestamp_ms=NOW_MS)
    yield plain
    for codec in CompressionType:
        yield with_records(codec, plain[HEADER_BYTES:], len(records))
    for transactional in (False, True):
        yield encode_batch(
            records,
            timestamp_ms=NOW_MS,
            producer_id=0,
            producer_epoch=0,
            base_sequence=0,
            transactional=transactional,
        )


SEEDS = tuple(_seeds())


def hostile_batch(random: Random) -> bytes:
    """Return a mutation of a valid batch."""
    batch = random.choice(SEEDS)
    at = random.choice((0, _ATTRIBUTES_AT, HEADER_BYTES))
    batch = batch[:at] + mutated(batch[at:], SEEDS, random)
    return sealed(batch) if random.random() < _SOUND_SHARE else batch
