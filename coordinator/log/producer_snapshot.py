"""Encode the producers of a partition as a file, `<offset>.snapshot`, in Kafka's format.

    version int16 1 | crc32c uint32 of the rest | producers, int32 first: their number
    producer id int64 | epoch int16 | of the last batch: last sequence int32, last offset int64,
    last less first sequence int32 | timestamp int64 | coordinator epoch int32
    | first offset of the open transaction int64

Kafka keeps the last batch of a producer only, and so forgets in a restart how to answer a retry of
the four before it. Here they follow, under the same checksum, behind the part that Kafka reads: for
each producer int32 how many, and for each of these first, last sequence int32, base offset and log
append time int64.
Source: ProducerSnapshot.json, org.apache.kafka.storage.internals.log.ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from struct import Struct
from struct import error as TooShort  # noqa: N812

from crc32c import crc32c

from coordinator.log.producer_state import (
    BATCHES_KEPT,
    AppendedBatch,
    KnownProducer,
    ProducerStateEntry,
    ProducerStateManager,
)

_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_BATCH = Struct(">iiqq")
# The struct at index n has a count and n batches.
_BATCHES = [Struct(">i" + "iiqq" * count) for count in range(BATCHES_KEPT + 1)]
_VERSION = 1


class CorruptSnapshot(ValueError):
    """Reports a file that is no snapshot, or a damaged one: the log has to be read instead."""


def encode_producer_snapshot(producers: Sequence[KnownProducer]) -> bytes:
    """Encode the producers that `ProducerStateManager.iterate_producers` yields as a snapshot.

    It may be called on another thread.
    """
    entries = bytearray(_COUNT.pack(len(producers)))
    batches = bytearray()
    for producer_id, producer, first_offset in producers:
        last = producer.batches[-1] if producer.batches else None
        delta = last.last_offset - last.base_offset if last else 0
        entries += _ENTRY.pack(
            producer_id,
            producer.epoch,
            last.last_sequence if last else -1,
            last.last_offset if last else -1,
            delta,
            producer.last_timestamp_ms,
            producer.coordinator_epoch,
            first_offset,
        )
        count = len(producer.batches)
        batches += _BATCHES[count].pack(count, *chain.from_iterable(producer.batches))
    entries += batches
    return _HEAD.pack(_VERSION, crc32c(bytes(entries))) + entries


def decode_producer_snapshot(data: bytes) -> ProducerStateManager:
    """Decode the producers of a partition from a snapshot.

    Raises: CorruptSnapshot if it isn't the one that was written.
    """
    try:
        version, crc = _HEAD.unpack_from(data)
        if version != _VERSION or crc != crc32c(data[_HEAD.size :]):
            raise CorruptSnapshot(f"version {version}, checksum {crc:#010x}")
        (count,) = _COUNT.unpack_from(data, _HEAD.size)
        producers = ProducerStateManager()
        at = _HEAD.size + _COUNT.size
        rest = at + count * _ENTRY.size
        for _ in range(count):
            producer_id, epoch, *_, timestamp_ms, coordinator_epoch, first_offset = (
                _ENTRY.unpack_from(data, at)
            )
            (batch_count,) = _COUNT.unpack_from(data, rest)
            rest += _COUNT.size
            batches = []
            for _ in range(batch_count):
                batches.append(AppendedBatch._make(_BATCH.unpack_from(data, rest)))
                rest += _BATCH.size
            last = tuple(batches[-BATCHES_KEPT:])
            producer = ProducerStateEntry(epoch, coordinator_epoch, timestamp_ms, last)
            producers.restore_producer(producer_id, producer, first_offset)
            at += _ENTRY.size
    except TooShort as error:
        raise CorruptSnapshot(str(error)) from error
    return producers
