"""Hold the state of a shard of `__consumer_offsets`: its offsets and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from coordinator.groups.classic import records as group_records
from coordinator.groups.classic import state as classic
from coordinator.groups.classic.state import ClassicGroup, GroupForgotten, GroupSaved
from coordinator.groups.consumer import apply as consumer_apply
from coordinator.groups.consumer import record_types as consumer
from coordinator.groups.consumer import records as consumer_records
from coordinator.groups.consumer.record_types import ConsumerGroupForgotten
from coordinator.groups.consumer.state import ConsumerGroup
from coordinator.groups.streams import apply as streams_apply
from coordinator.groups.streams import record_types as streams
from coordinator.groups.streams import records as streams_records
from coordinator.groups.streams.record_types import StreamsGroupForgotten
from coordinator.groups.streams.state import StreamsGroup
from coordinator.offsets import apply as offset_apply
from coordinator.offsets import records as offset_records
from coordinator.offsets import state as offsets
from coordinator.offsets.commit_encoding import encode_commit_records
from coordinator.offsets.state import (
    CommittedColumns,
    OffsetCommitted,
    OffsetForgotten,
    OffsetState,
)
from coordinator.shard.decision import LogRecordOrigin, TransactionEnded
from coordinator.shard.record_fields import EncodedKey, EncodedValue, FieldReader

Record: TypeAlias = offsets.Record | classic.Record | consumer.Record | streams.Record


@dataclass(slots=True)
class GroupShardState:
    """Holds the offsets and groups of one shard; only `apply_record` writes what a log says.

    `classic`: what the last record of each group says, with the join state that the membership
    keeps there beside.
    """

    offsets: OffsetState = field(default_factory=OffsetState)
    classic: dict[str, ClassicGroup] = field(default_factory=dict)
    consumer: dict[str, ConsumerGroup] = field(default_factory=dict)
    streams: dict[str, StreamsGroup] = field(default_factory=dict)

    def clear_state(self) -> None:
        """Drop everything, as the log belongs to another broker or is about to be loaded anew."""
        self.offsets.clear_offsets()
        self.classic.clear()
        self.consumer.clear()
        self.streams.clear()

    def try_apply_offsets_of_one_group(self, records: Sequence[Record], base_offset: int) -> bool:
        """Apply offsets that were committed together outside a transaction, as `apply_record` does.

        Return False, and do nothing, for any other records.
        """
        if isinstance(records, CommittedColumns):
            offset_apply.apply_columns(self.offsets, records, base_offset)
            return True
        offsets = [record for record in records if record.__class__ is OffsetCommitted]
        return len(offsets) == len(records) and offset_apply.try_apply_offsets_of_one_group(
            self.offsets, offsets, base_offset
        )

    def apply_record(self, record: Record | TransactionEnded, origin: LogRecordOrigin) -> None:
        """Change the state as a record or a transaction marker says."""
        match record:
            case OffsetCommitted() | OffsetForgotten() | TransactionEnded():  # most records
                offset_apply.apply_record(self.offsets, record, origin)
            case GroupSaved():
                classic.apply_record(self.classic, record)
            case GroupForgotten(group_id):
                classic.apply_record(self.classic, record)
                self.offsets.groups.discard(group_id)
            case ConsumerGroupForgotten():
                consumer_apply.apply_record(self.consumer, record, origin)
                self.offsets.groups.discard(record.group_id)
            case StreamsGroupForgotten():
                streams_apply.apply_record(self.streams, record, origin)
                self.offsets.groups.discard(record.group_id)
            case _:
                if isinstance(record, streams.Record):
                    streams_apply.apply_record(self.streams, record, origin)
                else:
                    consumer_apply.apply_record(self.consumer, record, origin)


_OFFSETS = (OffsetCommitted, OffsetForgotten)


class GroupCodec:
    """Encodes and decodes records of `__consumer_offsets` by the type that their keys start with.

    Types that this broker has no use for are passed over, as Kafka does it after a downgrade.
    """

    def encode_record(self, record: Record) -> tuple[EncodedKey | None, EncodedValue]:
        if isinstance(record, _OFFSETS):  # most records
            return offset_records.encode_offset_record(record)
        if isinstance(record, GroupSaved | GroupForgotten):
            return group_records.encode_group_record(record)
        if isinstance(record, streams.Record):
            return streams_records.encode_streams_record(record)
        return consumer_records.encode_consumer_record(record)

    def encode_together(self, records: Sequence[Record]) -> bytes | None:
        return encode_commit_records(records) if isinstance(records, CommittedColumns) else None

    def decode_record(self, key: bytes | None, value: bytes | None) -> Record | None:
        reader = FieldReader(key)
        record_type = reader.read_int16()
        if key is not None and record_type in offset_records.KEY_TYPES:
            return offset_records.decode_offset_record(key, value)
        if record_type == group_records.GROUP_KEY:
            return group_records.decode_group_record(reader, value)
        if record_type in consumer_records.DECODERS:
            return consumer_records.decode_consumer_record(record_type, reader, value)
        if record_type in streams_records.DECODERS:
            return streams_records.decode_streams_record(record_type, reader, value)
        return None
