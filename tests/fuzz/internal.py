"""Mutate the broker's own records and files, as a broken disk gives them back.

No client writes them, but what is loaded at start decides what is true. A decoder says ValueError
(or IndexError, at the end of the bytes): then the start says which record is damaged; or
UnknownVersion: then the record is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

from crc32c import crc32c

from coordinator.groups.consumer.records import DECODERS, decode_consumer_record
from coordinator.groups.state import GroupCodec
from coordinator.log.batch import iterate_batches, parse_header
from coordinator.log.producer_snapshot import decode_producer_snapshot, encode_producer_snapshot
from coordinator.log.producer_state import ProducerStateManager
from coordinator.shard.record_fields import FieldReader, UnknownRecordVersion
from coordinator.transactions.producer_ids import ProducerIdsAllocated, ProducerIdsCodec
from coordinator.transactions.records import TransactionCodec
from tests.fuzz.batches import hostile_batch
from tests.fuzz.mutations import mutated
from tests.own_batches import encode_batch
from tests.unit.coordinator.groups.classic import test_records as groups
from tests.unit.coordinator.groups.consumer.golden import GOLDEN
from tests.unit.coordinator.log.logs import NOW_MS
from tests.unit.coordinator.offsets import test_records as offsets
from tests.unit.coordinator.transactions import test_records as transactions


def _decode_consumer(key: bytes | None, value: bytes | None) -> object:
    reader = FieldReader(key)
    kind = reader.read_int16()
    return decode_consumer_record(kind, reader, value) if kind in DECODERS else None


_IDS = ProducerIdsCodec()
_GROUPS, _TRANSACTIONS = GroupCodec(), TransactionCodec(lambda: 2)
_SEEDS: tuple[tuple[Callable[[bytes | None, bytes | None], object], bytes, bytes | None], ...] = (
    (_GROUPS.decode_record, groups.KEY, groups.V3),
    (_GROUPS.decode_record, groups.KEY, groups.V4),
    (_GROUPS.decode_record, offsets.KEY, offsets.PLAIN),
    (_GROUPS.decode_record, offsets.KEY, offsets.WITH_ID),
    (_TRANSACTIONS.decode_record, transactions.KEY, transactions.ONGOING),
    (_TRANSACTIONS.decode_record, transactions.KEY, transactions.ONGOING_V1),
    *((_decode_consumer, bytes.fromhex(g.key), bytes.fromhex(g.value)) for g in GOLDEN if g.value),
    (_IDS.decode_record, b"", _IDS.encode_record(ProducerIdsAllocated(1_000))[1]),
)
_OTHERS = [key for _, key, _ in _SEEDS] + [value for _, _, value in _SEEDS if value]


def decode_one(random: Random) -> None:
    """Decode a mutated record.

    Whatever isn't the decoder's way to say no is raised.
    """
    decode, key, value = random.choice(_SEEDS)
    if random.random() < 0.3:
        key = mutated(key, _OTHERS, random)
    else:
        value = mutated(value or b"", _OTHERS, random)
    with suppress(ValueError, IndexError, UnknownRecordVersion):
        decode(key, value)


def open_one(random: Random) -> None:
    """Open the records of a mutated batch as recovery and a look-up by time do."""
    with suppress(ValueError, IndexError):
        for batch in iterate_batches(hostile_batch(random)):
            for _ in batch.iterate_records():
                pass


def _snapshot() -> bytes:
    """Return a snapshot of two producers, one of them in a transaction."""
    producers = ProducerStateManager()
    for producer_id in (1, 2):
        batch = encode_batch(
            [(b"k", b"v")] * 3,
            timestamp_ms=NOW_MS,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=producer_id == 2,
        )
        producers.apply_batch(parse_header(batch), 0)
    return encode_producer_snapshot(list(producers.iterate_producers()))


def snapshot_one(random: Random) -> None:
    """Load a mutated snapshot of the producers, mostly under a checksum that is right."""
    data = mutated(_SNAPSHOT[6:], _OTHERS, random)
    checksum = crc32c(data) if random.random() < 0.9 else 0
    with suppress(ValueError):
        decode_producer_snapshot(b"\0\x01" + checksum.to_bytes(4, "big") + data)


_SNAPSHOT = _snapshot()
