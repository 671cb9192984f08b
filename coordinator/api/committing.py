"""What OffsetCommit and TxnOffsetCommit share: from the partitions of a request to the command, and
from its codes to the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from coordinator.api.coordinator_codes import coordinator_code
from coordinator.errors import Code, Refused
from coordinator.log.topics import Topic
from coordinator.offsets.commit import CommitOffset, commit_offset


class Asked:
    """The partitions of one request: those that there are, and a code for each other one."""

    def __init__(
        self, topics: Iterable[Any], find: Callable[[Any], Topic | None], unknown_topic: Code
    ) -> None:
        self.offsets: list[CommitOffset] = []
        self._topics = topics
        self._codes: list[list[Code | None]] = []  # None: of the next one of `offsets`
        for asked in topics:
            topic = find(asked)
            if topic is None:
                self._codes.append([unknown_topic] * len(asked.partitions))
                continue
            count = len(topic.partitions)
            codes: list[Code | None] = []
            for partition in asked.partitions:
                if 0 <= partition.partition_index < count:
                    codes.append(None)
                    self.offsets.append(_offset_of(topic, partition))
                else:
                    codes.append(Code.UNKNOWN_TOPIC_OR_PARTITION)
            self._codes.append(codes)

    def answer(
        self, commit: Callable[[list[CommitOffset]], Iterable[Code]]
    ) -> list[dict[str, Any]]:
        """The topics of the answer. `commit` gives a code for each of `offsets`, or is Refused for
        all of them; it isn't called at all if there are none."""
        codes: Iterable[Code] = ()
        if self.offsets:
            try:
                codes = commit(self.offsets)
            except Refused as error:
                codes = repeat(coordinator_code(error.code))
        following = iter(codes)
        return [
            _topic(topic, [next(following) if code is None else code for code in found])
            for topic, found in zip(self._topics, self._codes, strict=True)
        ]


def refused(topics: Iterable[Any], code: Code) -> list[dict[str, Any]]:
    """The topics of an answer that has the same code for every partition."""
    return [_topic(topic, [code] * len(topic.partitions)) for topic in topics]


def _topic(topic: Any, codes: Iterable[Code]) -> dict[str, Any]:
    return {
        "name": getattr(topic, "name", None),
        "topic_id": getattr(topic, "topic_id", None),
        "partitions": [
            {"partition_index": partition.partition_index, "error_code": code}
            for partition, code in zip(topic.partitions, codes, strict=True)
        ],
    }


def _offset_of(topic: Topic, asked: Any) -> CommitOffset:
    """What a request says of one partition. Fields that its version lacks have Kafka's defaults."""
    return commit_offset(
        (
            topic.name,
            asked.partition_index,
            asked.committed_offset,
            getattr(asked, "committed_leader_epoch", -1),
            asked.committed_metadata or "",
            topic.id,
        )
    )
