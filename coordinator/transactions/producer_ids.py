"""Allocate producer ids in blocks of 1000, each logged before its first id is handed out.

After a crash the rest of the block is skipped, so no id is ever handed out twice. The record is
Kafka's own ProducerIdsRecord, in `__cluster_metadata`, where Kafka keeps it too.
Source: `metadata/src/main/resources/common/metadata/ProducerIdsRecord.json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.errors import Code, Refused
from coordinator.shard.decision import Decision, LogRecordOrigin, TransactionEnded
from coordinator.shard.record_fields import EncodedKey, EncodedValue, FieldReader, FieldWriter
from coordinator.shard.shard import Shard

BLOCK_SIZE = 1000
PREFETCH_AT = BLOCK_SIZE // 10  # ids left, when 90 % are handed out
RECORD_TYPE = 15
FRAME_VERSION = 1


@dataclass(frozen=True, slots=True)
class ProducerIdsAllocated:
    """Records that all ids below `next_producer_id` have been allocated."""

    next_producer_id: int
    broker_id: int = 1
    broker_epoch: int = 0


class ProducerIdsCodec:
    """Encodes and decodes the metadata record of allocated producer ids.

    It has unsigned varints for frame version, type and version, then the fields.
    """

    def encode_record(self, record: ProducerIdsAllocated) -> tuple[EncodedKey | None, EncodedValue]:
        """Encode an allocation as key and value of a record."""
        writer = FieldWriter(FRAME_VERSION << 8 | RECORD_TYPE)  # two varints of one byte each
        writer.write_int8(0)
        writer.write_int32(record.broker_id)
        writer.write_int64(record.broker_epoch)
        writer.write_int64(record.next_producer_id)
        writer.write_int8(0)  # no tagged fields
        return None, writer.to_bytes()

    def encode_together(self, records: Sequence[ProducerIdsAllocated]) -> None:
        return None

    def decode_record(self, key: bytes | None, value: bytes | None) -> ProducerIdsAllocated | None:
        """Decode the record of an allocation; None for a record of another type.

        Raises: ValueError for a version of a newer broker.
        """
        reader = FieldReader(value)
        if reader.read_uvarint() != FRAME_VERSION or reader.read_uvarint() != RECORD_TYPE:
            return None
        version = reader.read_uvarint()
        if version:  # if the record were passed over, its ids would be handed out again
            raise ValueError(f"producer ids in version {version}: start the newer broker")
        broker_id, broker_epoch = reader.read_int32(), reader.read_int64()
        return ProducerIdsAllocated(reader.read_int64(), broker_id, broker_epoch)


@dataclass(slots=True)
class ProducerIdState:
    """Holds the end of the last block in the log; only `apply_record` writes it."""

    next_block: int = 0

    def apply_record(
        self, record: ProducerIdsAllocated | TransactionEnded, origin: LogRecordOrigin
    ) -> None:
        """Apply the record of an allocation to the state.

        Raises: ValueError if ids fall, or the record is a marker.
        """
        match record:
            case ProducerIdsAllocated(next_producer_id):
                if next_producer_id < self.next_block:
                    raise ValueError(f"producer ids fall from {self.next_block}: {record}")
                self.next_block = next_producer_id
            case TransactionEnded():
                raise ValueError(f"a marker among metadata records at {origin.offset}")


def allocate_block(
    state: ProducerIdState, minimum_id: int = 0
) -> Decision[ProducerIdsAllocated, range]:
    """Decide to allocate the next block of ids, none of which is below `minimum_id`."""
    start = max(state.next_block, minimum_id)
    end = start + BLOCK_SIZE
    return Decision((ProducerIdsAllocated(end),), range(start, end))


class ProducerIdManager:
    """Hands out producer ids from an allocated block, each at most once.

    The next block is allocated when a tenth of the current one is left, so that a log that can't be
    written to for a while doesn't stop new producers. Kafka: `ProducerIdManager`.
    """

    def __init__(self, shard: Shard[ProducerIdsAllocated], state: ProducerIdState) -> None:
        self._shard = shard
        self._state = state
        self._block = range(0)
        self._next_block = range(0)
        self._at_least = 0

    @property
    def has_allocated_ids(self) -> bool:
        """Return whether the log says that ids have been handed out."""
        return self._state.next_block > 0

    def skip_ids_up_to(self, producer_id: int) -> None:
        """Skip all ids up to this one, which some transactional id has already.

        An id ahead of the blocks has come with files of another broker.
        """
        if producer_id < self._at_least:
            return
        self._at_least = producer_id + 1
        self._block = range(max(self._block.start, self._at_least), self._block.stop)
        self._next_block = range(max(self._next_block.start, self._at_least), self._next_block.stop)

    def generate_producer_id(self) -> int:
        """Return a producer id that nobody has had.

        Raises: Refused (COORDINATOR_LOAD_IN_PROGRESS, which clients retry) if none can be allocated
        now.
        """
        if len(self._block) <= PREFETCH_AT and not self._next_block:
            try:
                self._next_block = self._shard.execute_decision(
                    allocate_block(self._state, self._at_least)
                )
            except Refused as refused:
                if not self._block:
                    raise Refused(
                        Code.COORDINATOR_LOAD_IN_PROGRESS, f"no producer ids: {refused}"
                    ) from refused
        if not self._block:
            self._block, self._next_block = self._next_block, range(0)
        found, self._block = self._block[0], self._block[1:]
        return found
