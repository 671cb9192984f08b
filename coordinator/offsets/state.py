"""Hold the committed and the pending offsets of a shard of `__consumer_offsets`.

Theory of operation. An offset that is committed outside a transaction counts at once. One that is
committed inside is pending, by producer id, until the marker of that producer is applied: a commit
makes it count if its record is newer than the one that counts by then, an abort drops it. The
marker is appended and applied before the coordinator goes on (see `transactions.service`), so the
pending offsets of a producer are always those of one transaction.

        pending ---- marker: commit, and newer ---> committed
           |-------- marker: abort, or older -----> gone

Records: `OffsetCommitted` (its producer id, in `LogRecordOrigin`, says pending or not),
`OffsetForgotten`, and the marker, `TransactionEnded`.

Somebody who commits offsets for a group that nobody has joined makes it a group by that: a simple
one, Empty, without a protocol. It stays one when its offsets are gone, until it is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias
from uuid import UUID

OffsetKey: TypeAlias = tuple[str, str, int]  # group id, topic, partition

NO_OFFSET = -1
NEVER = -1


class OffsetCommitted(NamedTuple):
    """Represents the record of one committed offset.

    `expires_at_ms`: when it expires by its client's own wish; NEVER: it has none (see `expire`).
    """

    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    topic_id: UUID | None = None
    expires_at_ms: int = NEVER

    @property
    def key(self) -> OffsetKey:
        """Return the group id, topic and partition."""
        return self.group_id, self.topic, self.partition


# Does the same as `OffsetCommitted(...)` in a third of the time: one is made for each partition.
create_offset_committed: Callable[
    [tuple[str, str, int, int, int, str, int, UUID | None, int]], OffsetCommitted
] = partial(tuple.__new__, OffsetCommitted)


class CommittedOffset(NamedTuple):
    """Represents an offset as it is kept: its record, and the record's own offset in the log."""

    record: OffsetCommitted
    record_offset: int

    @property
    def offset(self) -> int:
        return self.record.offset

    @property
    def leader_epoch(self) -> int:
        return self.record.leader_epoch

    @property
    def metadata(self) -> str:
        return self.record.metadata

    @property
    def committed_at_ms(self) -> int:
        return self.record.committed_at_ms

    @property
    def topic_id(self) -> UUID | None:
        return self.record.topic_id

    @property
    def expires_at_ms(self) -> int:
        return self.record.expires_at_ms


create_committed_offset: Callable[[tuple[OffsetCommitted, int]], CommittedOffset] = partial(
    tuple.__new__, CommittedOffset
)


@dataclass(frozen=True, slots=True)
class OffsetForgotten:
    """Represents the tombstone of one committed offset."""

    group_id: str
    topic: str
    partition: int

    @property
    def key(self) -> OffsetKey:
        """Return the group id, topic and partition."""
        return self.group_id, self.topic, self.partition


Record: TypeAlias = OffsetCommitted | OffsetForgotten


@dataclass(slots=True)
class OffsetState:
    """Holds the offsets of one shard; only `apply_record` writes it.

    Groups and keys without offsets are not kept.
    """

    committed: dict[str, dict[tuple[str, int], CommittedOffset]] = field(default_factory=dict)
    pending: dict[int, dict[OffsetKey, CommittedOffset]] = field(default_factory=dict)
    # The producers that have a pending offset, by group and partition.
    pending_producers: dict[str, dict[tuple[str, int], set[int]]] = field(default_factory=dict)
    # Groups that somebody has committed offsets for since they were last deleted.
    groups: set[str] = field(default_factory=set)

    def clear_offsets(self) -> None:
        """Drop all offsets, as the log is to be loaded anew or belongs to another broker."""
        self.committed.clear()
        self.pending.clear()
        self.pending_producers.clear()
        self.groups.clear()
