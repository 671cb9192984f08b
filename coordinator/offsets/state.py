"""The offsets of a shard of `__consumer_offsets`.

Theory of operation. An offset that is committed outside a transaction counts at once. One that is
committed inside is pending, by producer id, until the marker of that producer is applied: a commit
makes it count if its record is newer than the one that counts by then, an abort drops it. The
marker is appended and applied before the coordinator goes on (see `transactions.service`), so the
pending offsets of a producer are always those of one transaction.

        staged ---- marker: commit, and newer ----> committed
           |------- marker: abort, or older ------> gone

Records: `OffsetCommitted` (its producer id, in `Origin`, says pending or not), `OffsetForgotten`,
and the marker, `TransactionEnded`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

OffsetKey: TypeAlias = tuple[str, str, int]  # group id, topic, partition

NO_OFFSET = -1


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """An offset as it is kept; `record_offset` is the place of its record in the log."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    topic_id: UUID | None
    record_offset: int


@dataclass(frozen=True, slots=True)
class OffsetCommitted:
    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    topic_id: UUID | None = None

    @property
    def key(self) -> OffsetKey:
        return self.group_id, self.topic, self.partition


@dataclass(frozen=True, slots=True)
class OffsetForgotten:
    group_id: str
    topic: str
    partition: int

    @property
    def key(self) -> OffsetKey:
        return self.group_id, self.topic, self.partition


Record: TypeAlias = OffsetCommitted | OffsetForgotten


@dataclass(slots=True)
class OffsetState:
    """Only apply() writes it. Groups and keys without offsets are not kept."""

    committed: dict[str, dict[tuple[str, int], CommittedOffset]] = field(default_factory=dict)
    pending: dict[int, dict[OffsetKey, CommittedOffset]] = field(default_factory=dict)

    def has_pending(self, key: OffsetKey) -> bool:
        """Some open transaction holds an offset for this partition."""
        return any(key in offsets for offsets in self.pending.values())

    def has_group(self, group_id: str) -> bool:
        """The group has offsets, committed or pending: it exists, if only by them."""
        return group_id in self.committed or any(self.pending_in(group_id))

    def pending_in(self, group_id: str) -> Iterator[OffsetKey]:
        return (key for found in self.pending.values() for key in found if key[0] == group_id)
