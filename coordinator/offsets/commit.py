"""Decide OffsetCommit and TxnOffsetCommit, once the group has accepted the member.

The decision is the same for both: in a transaction it carries the producer, and what it appends is
pending until the marker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import NamedTuple
from uuid import UUID

from coordinator.errors import Code
from coordinator.offsets.state import (
    NEVER,
    CommittedColumns,
    OffsetCommitted,
    create_offset_committed,
)
from coordinator.shard.decision import Decision, TransactionalProducer


class OffsetToCommit(NamedTuple):
    """Represents the offset of one partition in a request to commit."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: UUID | None = None


create_offset_to_commit: Callable[[tuple[str, int, int, int, str, UUID | None]], OffsetToCommit] = (
    partial(tuple.__new__, OffsetToCommit)
)


class OffsetColumns(Collection[OffsetToCommit]):
    """Holds the offsets of a request to commit in columns: of one topic, without metadata.

    Nearly every commit is such (see `CommittedColumns`).
    """

    __slots__ = ("leader_epochs", "offsets", "partitions", "topic", "topic_id")

    def __init__(
        self,
        topic: str,
        topic_id: UUID,
        partitions: tuple[int, ...],
        offsets: Sequence[int],
        leader_epochs: Sequence[int],
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions
        self.offsets = offsets
        self.leader_epochs = leader_epochs

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[OffsetToCommit]:
        columns = self.partitions, self.offsets, self.leader_epochs
        topics, ids = repeat(self.topic), repeat(self.topic_id)
        return map(create_offset_to_commit, zip(topics, *columns, repeat(""), ids, strict=False))

    def __contains__(self, offset: object) -> bool:
        return offset in tuple(self)


class OffsetCommitCommand(NamedTuple):
    """Asks to commit offsets of a group, in the transaction of `producer` if that is set.

    `retention_ms`: how long the client wants its offsets to be kept, None for as long as the broker
    keeps others.
    """

    group_id: str
    offsets: Collection[OffsetToCommit]
    producer: TransactionalProducer | None = None
    retention_ms: int | None = None


class CommittingMember(NamedTuple):
    """Identifies the member that commits: generation -1 and empty ids for one that is no member.

    `knows_epochs`: the version of its request has member epochs (KIP-848) for generations.
    """

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None
    knows_epochs: bool = True

    @property
    def claims_membership(self) -> bool:
        """Return whether the request names a generation, a member id or an instance id."""
        return self.generation >= 0 or bool(self.member_id) or self.instance_id is not None


def decide_offset_commit(
    command: OffsetCommitCommand, metadata_max_bytes: int, now_ms: int
) -> Decision[OffsetCommitted, list[Code]]:
    """Return the decision that commits offsets, with one code for each in their order.

    OFFSET_METADATA_TOO_LARGE leaves an offset out.
    """
    if isinstance(command.offsets, OffsetColumns) and command.retention_ms is None:
        return _decide_columns(command, command.offsets, now_ms)
    expires_at_ms = NEVER if command.retention_ms is None else now_ms + command.retention_ms
    records = []
    codes = []
    group_id = command.group_id
    for topic, partition, offset, leader_epoch, metadata, topic_id in command.offsets:
        if metadata and not is_metadata_within_limit(metadata, metadata_max_bytes):
            codes.append(Code.OFFSET_METADATA_TOO_LARGE)
            continue
        codes.append(Code.NONE)
        records.append(
            create_offset_committed(
                (
                    group_id,
                    topic,
                    partition,
                    offset,
                    leader_epoch,
                    metadata,
                    now_ms,
                    topic_id,
                    expires_at_ms,
                )
            )
        )
    return Decision(records, codes, producer=command.producer)


def _decide_columns(
    command: OffsetCommitCommand, offsets: OffsetColumns, now_ms: int
) -> Decision[OffsetCommitted, list[Code]]:
    """Return the decision that commits offsets without metadata, which are never refused."""
    records = CommittedColumns(
        command.group_id,
        offsets.topic,
        offsets.topic_id,
        now_ms,
        offsets.partitions,
        offsets.offsets,
        offsets.leader_epochs,
    )
    return Decision(records, [Code.NONE] * len(offsets.partitions), producer=command.producer)


def is_metadata_within_limit(metadata: str, max_length: int) -> bool:
    """Return whether `offset.metadata.max.bytes` allows this metadata.

    Kafka compares that with the length of Java's string, which is counted in UTF-16 code units: 1
    for most characters, 2 for those beyond U+FFFF.
    """
    if len(metadata) <= max_length // 2:
        return True
    return (
        len(metadata) <= max_length
        and len(metadata.encode("utf-16-le", "surrogatepass")) <= 2 * max_length
    )
