"""Describe what a shard needs of the partition log that it writes to, and of its record format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, TypeVar

from coordinator.shard.record_fields import EncodedKey, EncodedValue

BaseOffset: TypeAlias = int

R = TypeVar("R")


class ShardLog(Protocol):
    """Describes what a shard needs of the partition log that it writes to and replays."""

    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def batch_bytes_max(self) -> int: ...
    @property
    def damage(self) -> str | None: ...
    def refuse_writes_until_repaired(self, damage: str) -> None: ...
    def describe_damage_at(self, offset: int) -> str: ...
    def append_internal(self, batch: bytes) -> BaseOffset: ...
    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int = 0,
    ) -> BaseOffset: ...
    def read(self, offset: int, max_bytes: int) -> bytes: ...


class RecordCodec(Protocol[R]):
    """Translates records to and from the bytes that Kafka writes; value None is a tombstone."""

    def encode_record(self, record: R) -> tuple[EncodedKey | None, EncodedValue]: ...
    def encode_together(self, records: Sequence[R]) -> bytes | None:
        """Encode records as they stand in a batch; return None if each has to be encoded alone."""
        ...

    def decode_record(self, key: bytes | None, value: bytes | None) -> R | None:
        """Decode a record from its key and value; return None if the type is unknown.

        Raises `UnknownRecordVersion` for a value of an unknown version, ValueError or IndexError
        for damage.
        """
        ...
