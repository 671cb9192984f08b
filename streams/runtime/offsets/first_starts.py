"""Tell partitions that were added to an input from those of the group's first start with it.

`auto_offset_reset=latest`, or a duration, says where an application begins that reads a topic for
the first time: what came before is of no interest. It says nothing of partitions that are added
later. All of their records came after that, so they are read from their beginning, and none is
skipped until the group's leader has noticed them.

To tell them apart, each committed offset says when the group began to read its topic, and how many
partitions that had then (`streams.runtime.offsets.offset_metadata`). Commits pass it on, and never
raise the number. A partition that has no committed offset begins

    if                                                       it begins
    no partition of its topic has a committed offset         as the policy says, now: a first start
    it was there at the first start, as others say           as the policy would have said then
    it was not there at the first start, as others say       at offset 0
    others have committed offsets, which say nothing of it   at its beginning, with a warning

The second line is of workers that start at the same time, of which one has committed first; the
last of offsets that a tool has committed, or whose metadata had no room.
Kafka Streams asks the policy for each partition without a committed offset.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from enum import Enum, auto

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.runtime.offsets.offset_metadata import FirstStart, decode_metadata

log = logging.getLogger(__name__)


class Beginning(Enum):
    """Names the ways in which a partition without a committed offset begins, in the table above."""

    NOW = auto()
    EARLIER = auto()
    ADDED = auto()
    UNKNOWN = auto()


class FirstStarts:
    """Knows when the group first read each topic, and with how many partitions."""

    def __init__(self) -> None:
        self._by_topic: dict[str, FirstStart] = {}

    @property
    def by_topic(self) -> Mapping[str, FirstStart]:
        """Return the first starts that are known, by topic."""
        return self._by_topic

    def note_first_start(self, topic: str, at_ms: int, partition_count: int) -> None:
        """Note that a topic was first read `at_ms`, when it had `partition_count` partitions."""
        self._by_topic[topic] = FirstStart(at_ms, partition_count)

    def learn_first_starts(self, committed: Mapping[Partition, OffsetAndMetadata]) -> None:
        """Note the first starts that committed offsets tell of: of each topic the earliest one.

        Workers that started at the same time may have committed different ones.
        """
        for partition, held in committed.items():
            told = decode_metadata(held.metadata).first_start
            if told is not None:
                known = self._by_topic.get(partition.topic, told)
                self._by_topic[partition.topic] = FirstStart(*map(min, known[:2], told[:2]))

    def forget_topics(self, topics: Collection[str]) -> None:
        """Forget topics that were deleted and recreated."""
        for topic in topics:
            self._by_topic.pop(topic, None)

    def classify_beginning(self, partition: Partition, now_ms: int) -> Beginning:
        """Classify a partition without a committed offset: new, of a first start, or unknown.

        `now_ms` is when first starts were noted that are going on.
        """
        first = self._by_topic.get(partition.topic)
        if first is None:
            return Beginning.UNKNOWN
        if partition.number >= first.partition_count:
            return Beginning.ADDED
        return Beginning.NOW if first.at_ms == now_ms else Beginning.EARLIER


def log_beginning(
    beginning: Beginning, partition: Partition, offset: int, policy: str, start_offset: int = 0
) -> None:
    """Log where a partition without a committed offset begins, and why.

    `policy` names the setting, and `start_offset` is its first one. Records that a first start
    skips are a warning: a stateless application can't tell it from one whose input was made again,
    with which its offsets went.
    """
    level, reason = _REASONS[beginning]
    if beginning is Beginning.NOW and offset > start_offset:
        level = logging.WARNING
        reason += (
            f", and what it holds from {start_offset} on is skipped. If topic {partition.topic!r} "
            "was deleted and created again while the application was stopped, that is all of the "
            "new one (docs/what-happens-when.md#limits)"
        )
    log.log(
        level,
        "nothing is committed for %s: it begins at %d, %s (%s)",
        *(partition, offset, reason, policy),
    )


_REASONS = {
    Beginning.NOW: (logging.INFO, "as the policy says"),
    Beginning.EARLIER: (
        logging.WARNING,
        "the first record since the group began to read other partitions of its topic",
    ),
    Beginning.ADDED: (
        logging.INFO,
        "its beginning, since it was added after the group had begun to read its topic",
    ),
    Beginning.UNKNOWN: (
        logging.WARNING,
        "its beginning, since the offsets of other partitions of its topic don't tell if it is new",
    ),
}
"""For each way to begin, the level of the log and the reason."""
