"""What OffsetCommit and TxnOffsetCommit share: an offset, from the request to the command."""

from __future__ import annotations

from typing import Any

from coordinator.log.topics import Topic
from coordinator.offsets.commit import CommitOffset


def offset_of(topic: Topic, asked: Any) -> CommitOffset:
    """What a request says of one partition. Fields that its version lacks have Kafka's defaults."""
    return CommitOffset(
        topic=topic.name,
        partition=asked.partition_index,
        offset=asked.committed_offset,
        leader_epoch=getattr(asked, "committed_leader_epoch", -1),
        metadata=asked.committed_metadata or "",
        topic_id=topic.id,
    )
