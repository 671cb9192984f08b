"""Keep one fetch session: the partitions that a client reads, and the last answer about each.

A client names its partitions once, and from then on only changes; the answers have only partitions
that changed. Partitions are kept in the order in which they are read: one that had records goes to
the end, so that none starves behind one that always fills the answer.
Source: KIP-227; kafka.server.{FetchSession, CachedPartition}.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from uuid import UUID

HasNews: TypeAlias = bool  # whether the client must be told

FULL_EPOCH = 0  # a full request that begins a session
NO_SESSION_EPOCH = -1  # a full request outside a session, which ends one
NO_SESSION = 0
_EPOCH_MAX = 2**31 - 1

# A topic by name or by id, as the request's version has it, and a partition of it.
PartitionKey = tuple[str | UUID, int]


@dataclass(slots=True)
class FetchPartition:
    """Holds a requested partition: the offset to read from, and the last answer to the client.

    Kafka's counterpart is CachedPartition.
    """

    topic: str | UUID
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int = -1  # -1: the client sends none
    last_fetched_epoch: int = -1
    # The last answer in the session
    name: str | None = None  # of a topic given by id, once that is found
    high_watermark: int = -1
    start_offset: int = -1

    @property
    def key(self) -> PartitionKey:
        """Return the topic, by name or id as the client gave it, and the partition."""
        return self.topic, self.partition


class PartitionOutcome(NamedTuple):
    """Holds the parts of a partition's answer that decide whether it is sent."""

    has_records: bool
    failed: bool  # also if the client's log has to be truncated
    high_watermark: int
    start_offset: int


class FetchSession:
    """Holds the partitions of one client in the order in which they are read."""

    __slots__ = (
        "created_at_ms",
        "epoch",
        "evictable_size",
        "id",
        "last_used_at_ms",
        "partitions",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, FetchPartition],
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1  # the epoch that the next request must have
        self.created_at_ms = now_ms
        self.last_used_at_ms = now_ms
        self.evictable_size = -1  # see `session_cache`

    def add_update_and_forget_partitions(
        self, partitions: Iterable[FetchPartition], forgotten: Iterable[PartitionKey]
    ) -> None:
        """Add, update and forget partitions as a request says, keeping their last answers."""
        for partition in partitions:
            known = self.partitions.get(partition.key)
            if known is None:
                self.partitions[partition.key] = partition
            else:
                known.offset = partition.offset
                known.max_bytes = partition.max_bytes
                known.leader_epoch = partition.leader_epoch
                known.last_fetched_epoch = partition.last_fetched_epoch
        for key in forgotten:
            self.partitions.pop(key, None)

    def advance_epoch(self) -> None:
        self.epoch = next_epoch(self.epoch)

    def record_outcome(self, partition: FetchPartition, outcome: PartitionOutcome) -> HasNews:
        """Record the outcome of reading a partition; return whether it has news for the client.

        A partition that had records goes to the end of the order.
        """
        is_new = (
            outcome.has_records
            or outcome.failed
            or outcome.high_watermark != partition.high_watermark
            or outcome.start_offset != partition.start_offset
        )
        store_sent_outcome_in_partition(partition, outcome)
        if outcome.has_records and self.partitions.pop(partition.key, None) is not None:
            self.partitions[partition.key] = partition
        return is_new


def store_sent_outcome_in_partition(partition: FetchPartition, outcome: PartitionOutcome) -> None:
    """Store in a partition the high watermark and start offset that its client is sent.

    After an error it counts as knowing nothing, so that the next answer is sent in any case.
    """
    partition.high_watermark = -1 if outcome.failed else outcome.high_watermark
    partition.start_offset = outcome.start_offset


def next_epoch(epoch: int) -> int:
    """Return the session epoch after this one: 1 follows the largest, as 0 begins a session."""
    if epoch < 0:
        return NO_SESSION_EPOCH
    return 1 if epoch == _EPOCH_MAX else epoch + 1
