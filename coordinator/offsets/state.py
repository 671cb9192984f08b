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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, repeat
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, overload
from uuid import UUID

TopicPartition: TypeAlias = tuple[str, int]
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
        partitions: tuple[int, ...],
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

    def to_committed_offsets(
        self, base_offset: int
    ) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        """Yield the topic, the partition and the committed offset of each record of this commit.

        The first record stands at `base_offset` in the log.
        """
        committed_offsets = map(
            create_committed_offset,
            zip(
                self.offsets,
                self.leader_epochs,
                repeat(""),
                repeat(self.committed_at_ms),
                repeat(self.topic_id),
                repeat(NEVER),
                count(base_offset),
                strict=False,
            ),
        )
        partitions = zip(repeat(self.topic), self.partitions, strict=False)
        return zip(partitions, committed_offsets, strict=False)


class OffsetsByPartition(Mapping[TopicPartition, CommittedOffset]):
    """Holds the committed offsets of a group by topic and partition.

    Members commit for the same partitions again and again, and hardly anybody reads what they
    commit. So the latest commit for the same partitions of a topic is kept as it is, in the place
    of the one before, and its offsets are put into the mapping when one is read. Which partitions
    there are is known without that: another thread may count them.
    """

    __slots__ = ("_by_partition", "_has_unread", "_kept_partition_count", "_latest_commits")

    def __init__(self) -> None:
        self._by_partition: dict[TopicPartition, CommittedOffset] = {}
        # By topic and partitions, all of which are in `_by_partition`: the offset of the first
        # record of the latest commit, and the commit. None: its offsets are in `_by_partition`.
        self._latest_commits: dict[
            tuple[str, tuple[int, ...]], tuple[int, CommittedColumns] | None
        ] = {}
        self._kept_partition_count = 0  # in the keys of `_latest_commits`
        self._has_unread = False

    def add_commit(self, commit: CommittedColumns, base_offset: int) -> None:
        """Take over a commit newer than all others, whose first record is at `base_offset`."""
        key = commit.topic, commit.partitions
        if key in self._latest_commits:
            self._latest_commits[key] = base_offset, commit
            self._has_unread = True
            return
        self._load_unread_latest_commits()
        self._by_partition.update(commit.to_committed_offsets(base_offset))
        self._kept_partition_count += len(commit)
        if self._kept_partition_count > 2 * len(self._by_partition):  # of former assignments
            self._forget_latest_commits()
            self._kept_partition_count = len(commit)
        self._latest_commits[key] = None

    def set_offset(self, partition: TopicPartition, offset: CommittedOffset) -> None:
        """Set the offset of one partition, unless a newer record has set it before."""
        self._load_unread_latest_commits()
        previous = self._by_partition.get(partition)
        if previous is None or previous.record_offset < offset.record_offset:
            self._by_partition[partition] = offset

    def remove_offset(self, partition: TopicPartition) -> None:
        """Remove the offset of a partition, if it has one."""
        self._load_unread_latest_commits()
        self._forget_latest_commits()
        self._by_partition.pop(partition, None)

    def get(self, partition: TopicPartition, default: Any = None) -> Any:
        self._load_unread_latest_commits()
        return self._by_partition.get(partition, default)

    def __getitem__(self, partition: TopicPartition) -> CommittedOffset:
        self._load_unread_latest_commits()
        return self._by_partition[partition]

    def __contains__(self, partition: object) -> bool:
        return partition in self._by_partition

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._by_partition)

    def __len__(self) -> int:
        return len(self._by_partition)

    def __repr__(self) -> str:
        return repr(dict(self))

    def _load_unread_latest_commits(self) -> None:
        """Put the offsets of all commits that are kept into the mapping, the newest last."""
        if not self._has_unread:
            return
        unread = [kept for kept in self._latest_commits.values() if kept is not None]
        for base_offset, commit in sorted(unread, key=itemgetter(0)):
            self._by_partition.update(commit.to_committed_offsets(base_offset))
        self._latest_commits = dict.fromkeys(self._latest_commits)
        self._has_unread = False

    def _forget_latest_commits(self) -> None:
        """Forget commits whose offsets have been put into the mapping."""
        self._latest_commits.clear()
        self._kept_partition_count = 0


NO_OFFSETS: Mapping[TopicPartition, CommittedOffset] = MappingProxyType({})


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

    committed: dict[str, OffsetsByPartition] = field(default_factory=dict)
    pending: dict[int, dict[OffsetKey, CommittedOffset]] = field(default_factory=dict)
    # The producers that have a pending offset, by group and partition.
    pending_producers: dict[str, dict[TopicPartition, set[int]]] = field(default_factory=dict)
    # Groups that somebody has committed offsets for since they were last deleted.
    groups: set[str] = field(default_factory=set)

    def clear_offsets(self) -> None:
        """Drop all offsets, as the log is to be loaded anew or belongs to another broker."""
        self.committed.clear()
        self.pending.clear()
        self.pending_producers.clear()
        self.groups.clear()
