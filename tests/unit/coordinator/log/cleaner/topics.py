"""Represent a topic as a list of batches that is cleaned and consumed without any file."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from crc32c import crc32c

from coordinator.log.batch import HEADER_BYTES, RecordBatch, parse_header
from coordinator.log.batch_encoding import encode_marker
from coordinator.log.cleaner.batch_compaction import (
    CleaningParameters,
    LastProducerRecord,
    compact_batch,
)
from coordinator.log.cleaner.cleaned_transactions import CleanedTransactionMetadata
from coordinator.log.cleaner.offset_map import OffsetMap
from coordinator.log.cleaner.offset_map_builder import try_add_batch_to_offset_map
from coordinator.log.cleaner.steps import run_to_completion
from coordinator.log.compression import CompressionType, compress_records
from coordinator.log.producer_state import ProducerStateManager
from coordinator.log.transaction_index import AbortedTransaction
from tests.own_batches import encode_batch

NOW_MS = 1_700_000_000_000
RETENTION_MS = 1_000

Pair = tuple[bytes | None, bytes | None]


def at_offset(data: bytes, offset: int) -> RecordBatch:
    return parse_header(struct.pack(">q", offset) + data[8:])


def compressed(data: bytes, codec: CompressionType) -> bytes:
    out = bytearray(data)
    out[HEADER_BYTES:] = compress_records(codec, bytes(data[HEADER_BYTES:]))
    out[22] |= codec
    struct.pack_into(">i", out, 8, len(out) - 12)
    struct.pack_into(">I", out, 17, crc32c(bytes(out[21:])))
    return bytes(out)


@dataclass
class Topic:
    """Represents one partition whose batches are cleaned up to the last stable offset."""

    batches: list[RecordBatch] = field(default_factory=list)
    end_offset: int = 0
    aborted: list[AbortedTransaction] = field(default_factory=list)
    producers: ProducerStateManager = field(default_factory=ProducerStateManager)
    sequences: dict[int, int] = field(default_factory=dict)
    first_dirty: int = 0
    now_ms: int = NOW_MS

    def write(
        self,
        *pairs: Pair,
        producer_id: int = -1,
        transactional: bool = False,
        codec: CompressionType = CompressionType.NONE,
    ) -> None:
        sequence = -1
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(pairs)
        data = encode_batch(
            pairs,
            timestamp_ms=self.now_ms,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        batch = self._append(compressed(data, codec) if codec else data)
        if producer_id >= 0:
            self.producers.apply_batch(batch, batch.base_offset)

    def end(self, producer_id: int, *, committed: bool) -> None:
        marker = self._append(
            encode_marker(
                producer_id, 0, committed=committed, coordinator_epoch=0, timestamp_ms=self.now_ms
            )
        )
        aborted = self.producers.apply_marker(marker, marker.base_offset)
        if aborted is not None:
            self.aborted.append(aborted)

    def _append(self, data: bytes) -> RecordBatch:
        batch = at_offset(data, self.end_offset)
        self.batches.append(batch)
        self.end_offset = batch.last_offset + 1
        return batch

    @property
    def stable_offset(self) -> int:
        unstable = self.producers.first_unstable_offset()
        return self.end_offset if unstable is None else unstable

    def last_of_producers(self) -> dict[int, LastProducerRecord]:
        return {
            producer_id: LastProducerRecord(
                known.batches[-1].base_offset
                + known.batches[-1].last_sequence
                - known.batches[-1].first_sequence
                if known.batches
                else None,
                known.epoch,
            )
            for producer_id, known, _ in self.producers.iterate_producers()
        }

    def clean(self, map_bytes: int = 1 << 20, max_message_bytes: int = 1 << 20) -> bool:
        """Run one cleaning pass; return whether it has reached the last stable offset."""
        stable = self.stable_offset
        section = [batch for batch in self.batches if batch.last_offset < stable]
        end = section[-1].last_offset + 1 if section else 0
        offsets = OffsetMap(map_bytes)
        offsets.end_offset = self.first_dirty
        transactions = CleanedTransactionMetadata(self.aborted)
        for batch in section:
            if batch.last_offset >= self.first_dirty and not run_to_completion(
                try_add_batch_to_offset_map(batch, offsets, transactions, self.first_dirty)
            ):
                break
        cleaning = CleaningParameters(
            offsets=offsets,
            now_ms=self.now_ms,
            delete_retention_ms=RETENTION_MS,
            max_message_bytes=max_message_bytes,
            producers=self.last_of_producers(),
        )
        transactions = CleanedTransactionMetadata(self.aborted)
        left: list[RecordBatch] = []
        for batch in section:
            is_last = batch is section[-1]
            made = run_to_completion(compact_batch(batch, cleaning, transactions, is_last=is_last))
            left += map(parse_header, made)
        self.aborted = [
            *transactions.pop_transactions_with_kept_marker(),
            *(each for each in self.aborted if each.last_offset >= end),
        ]
        self.batches[: len(section)] = left
        done = not section or offsets.end_offset >= end
        self.first_dirty = max(self.first_dirty, offsets.end_offset)
        return done

    def clean_all(self, map_bytes: int = 1 << 20, max_message_bytes: int = 1 << 20) -> None:
        while not self.clean(map_bytes, max_message_bytes):
            pass

    # Consumers

    def records(self, *, committed: bool) -> Iterator[tuple[int, int, Pair]]:
        """Yield (offset, timestamp, (key, value)) as a consumer reads them from the beginning.

        It reads what is stable, or everything, and goes by aborted index and markers.
        """
        index = sorted(self.aborted, key=lambda each: each.first_offset)
        aborting: set[int] = set()
        for batch in self.batches:
            if committed and batch.last_offset >= self.stable_offset:
                return
            while index and index[0].first_offset <= batch.last_offset:
                aborting.add(index.pop(0).producer_id)
            if batch.is_control:
                if batch.record_count and not batch.decode_marker().is_commit:
                    aborting.discard(batch.producer_id)
                continue
            if committed and batch.is_transactional and batch.producer_id in aborting:
                continue
            for record in batch.iterate_records():
                yield record.offset, record.timestamp_ms, (record.key, record.value)

    def last_values(self) -> Mapping[bytes | None, bytes]:
        """Return the last value of each key, as a read_committed consumer has it in the end."""
        values: dict[bytes | None, bytes] = {}
        for _, _, (key, value) in self.records(committed=True):
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
        return values

    def rebuilt_sequences(self) -> dict[int, int]:
        """Return each producer's last sequence, as a broker rebuilds it from the log."""
        return {
            producer_id: known.batches[-1].last_sequence
            for producer_id, known, _ in self._rebuild_producers().iterate_producers()
            if known.batches
        }

    def rebuilt_transactions(self) -> list[tuple[int, int]]:
        """Return (producer id, first offset) of the transactions that a reloaded log has open."""
        return [
            (producer_id, first_offset)
            for producer_id, _, first_offset in self._rebuild_producers().iterate_producers()
            if first_offset >= 0
        ]

    def _rebuild_producers(self) -> ProducerStateManager:
        told = ProducerStateManager()
        for batch in self.batches:
            if batch.is_control:
                told.apply_marker(batch, batch.base_offset)
            elif batch.producer_id >= 0:
                told.apply_batch(batch, batch.base_offset)
        return told
