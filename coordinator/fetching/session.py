"""One fetch session: the partitions that a client reads, and what it was last told of each.

A client names its partitions once, and from then on only what has changed; the answers hold only
the partitions that have news. The order of the partitions is that of reading: one that had records
goes to the end, so that none starves behind one that always fills the answer.
Source: KIP-227; kafka.server.{FetchSession, CachedPartition}.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

FULL_EPOCH = 0  # a whole request that begins a session
NO_SESSION_EPOCH = -1  # a whole request outside of one, which ends it
NO_SESSION = 0
_EPOCH_MAX = 2**31 - 1

# A topic by name or by id, as the request's version has it, and a partition of it.
Key = tuple[str | UUID, int]


@dataclass(slots=True)
class Wanted:
    """A partition that is asked for, from which offset on, and what the client knows of it."""

    topic: str | UUID
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int = -1  # -1: the client doesn't say
    last_fetched_epoch: int = -1
    # What was answered last in the session
    name: str | None = None  # of a topic that is named by id, since it was found
    high_watermark: int = -1
    start_offset: int = -1

    @property
    def key(self) -> Key:
        return self.topic, self.partition


class News(NamedTuple):
    """What of an answer for a partition decides whether it is sent."""

    has_records: bool
    failed: bool  # or the client's log has to be truncated
    high_watermark: int
    start_offset: int


class Session:
    """The partitions of one client in the order in which they are read."""

    __slots__ = (
        "created_ms",
        "epoch",
        "evictable_size",
        "id",
        "last_used_ms",
        "partitions",
        "uses_ids",
    )

    def __init__(
        self, session_id: int, partitions: dict[Key, Wanted], uses_ids: bool, now_ms: int
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        self.uses_ids = uses_ids
        self.epoch = 1  # that the next request must have
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.evictable_size = -1  # see `sessions`

    def update(self, wanted: Iterable[Wanted], forgotten: Iterable[Key]) -> None:
        """Take over what a request changes. What was told of a partition stays true."""
        for one in wanted:
            known = self.partitions.get(one.key)
            if known is None:
                self.partitions[one.key] = one
            else:
                known.offset = one.offset
                known.max_bytes = one.max_bytes
                known.leader_epoch = one.leader_epoch
                known.last_fetched_epoch = one.last_fetched_epoch
        for key in forgotten:
            self.partitions.pop(key, None)

    def advance(self) -> None:
        self.epoch = next_epoch(self.epoch)

    def tell(self, one: Wanted, news: News) -> bool:
        """Whether the client is to be told; if so, it will know, and records send the partition
        to the end of the order."""
        is_new = (
            news.has_records
            or news.failed
            or news.high_watermark != one.high_watermark
            or news.start_offset != one.start_offset
        )
        remember(one, news)
        if news.has_records and self.partitions.pop(one.key, None) is not None:
            self.partitions[one.key] = one
        return is_new


def remember(one: Wanted, news: News) -> None:
    """What the client is told. After an error it knows nothing: what comes next is news."""
    one.high_watermark = -1 if news.failed else news.high_watermark
    one.start_offset = news.start_offset


def next_epoch(epoch: int) -> int:
    """1 follows the largest epoch: 0 would begin a new session."""
    if epoch < 0:
        return NO_SESSION_EPOCH
    return 1 if epoch == _EPOCH_MAX else epoch + 1
