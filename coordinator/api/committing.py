"""What OffsetCommit and TxnOffsetCommit share: from the partitions of a request to the command, and
from its codes to the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias
from uuid import UUID

from coordinator.api.coordinator_codes import coordinator_code
from coordinator.errors import Code, Refused
from coordinator.log.topics import Topic
from coordinator.offsets.commit import CommitOffset, commit_offset

# The topics of a request or an answer: name or id, and the partitions.
Shape: TypeAlias = tuple[tuple[str | None, UUID | None, tuple[int, ...]], ...]


class Asked:
    """The partitions of one request: those that there are, and a code for each other one."""

    def __init__(
        self, topics: Iterable[Any], find: Callable[[Any], Topic | None], unknown_topic: Code
    ) -> None:
        self.offsets: list[CommitOffset] = []
        self._topics = topics
        self._codes: list[list[Code | None]] = []  # None: of the next one of `offsets`
        self.all_there = True
        for asked in topics:
            topic = find(asked)
            if topic is None:
                self._codes.append([unknown_topic] * len(asked.partitions))
                self.all_there = False
                continue
            count = len(topic.partitions)
            codes: list[Code | None] = []
            for partition in asked.partitions:
                if 0 <= partition.partition_index < count:
                    codes.append(None)
                    self.offsets.append(_offset_of(topic, partition))
                else:
                    codes.append(Code.UNKNOWN_TOPIC_OR_PARTITION)
                    self.all_there = False
            self._codes.append(codes)

    def codes(self, commit: Callable[[list[CommitOffset]], list[Code]]) -> list[Code]:
        """A code for each of `offsets`, as `commit` gives them, or is Refused for all of them; it
        isn't called at all if there are none."""
        if not self.offsets:
            return []
        try:
            return commit(self.offsets)
        except Refused as error:
            return [coordinator_code(error.code)] * len(self.offsets)

    @property
    def shape(self) -> Shape:
        """What is asked for, without the offsets."""
        return tuple(
            [
                (
                    getattr(topic, "name", None),
                    getattr(topic, "topic_id", None),
                    tuple([partition.partition_index for partition in topic.partitions]),
                )
                for topic in self._topics
            ]
        )

    def answer(self, codes: Iterable[Code]) -> list[dict[str, Any]]:
        """The topics of the answer, with these codes for `offsets`."""
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
