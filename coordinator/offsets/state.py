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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import NamedTuple, TypeAlias, overload
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


class CommittedColumns(Sequence[OffsetCommitted]):
    """Holds the records of a commit in columns: of one topic, without metadata or expiry.

    Nearly every commit is such. As a sequence it is that of the records, which are created for
    whoever asks; what writes and applies a commit reads the columns.
    """

    __slots__ = (
        "committed_at_ms",
        "group_id",
        "leader_epochs",
        "offsets",
        "partitions",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        group_id: str,
        topic: str,
        topic_id: UUID | None,
        committed_at_ms: int,
        partitions: Sequence[int],
        offsets: Sequence[int],
        leader_epochs: Sequence[int],
    ) -> None:
        self.group_id = group_id
        self.topic = topic
        self.topic_id = topic_id
        self.committed_at_ms = committed_at_ms
        self.partitions = partitions
        self.offsets = offsets
        self.leader_epochs = leader_epochs

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[OffsetCommitted]:
        return map(
            create_offset_committed,
            zip(
                repeat(self.group_id),
                repeat(self.topic),
                self.partitions,
                self.offsets,
                self.leader_epochs,
                repeat(""),
                repeat(self.committed_at_ms),
                repeat(self.topic_id),
                repeat(NEVER),
                strict=False,
            ),
        )

    @overload
    def __getitem__(self, index: int) -> OffsetCommitted: ...
    @overload
    def __getitem__(self, index: slice) -> list[OffsetCommitted]: ...
    def __getitem__(self, index: int | slice) -> OffsetCommitted | list[OffsetCommitted]:
        return list(self)[index]


class CommittedOffset(NamedTuple):
    """Represents an offset as it is kept: what its record says, and where that is in the log."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    topic_id: UUID | None
    expires_at_ms: int
    record_offset: int


create_committed_offset: Callable[
    [tuple[int, int, str, int, UUID | None, int, int]], CommittedOffset
] = partial(tuple.__new__, CommittedOffset)


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
