"""Convert requests to commit offsets to commands, and their codes to responses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from coordinator.api.coordinator_codes import translate_coordinator_code
from coordinator.errors import Code
from coordinator.log.topics import BrokerTopic
from coordinator.offsets.commit import OffsetColumns, OffsetToCommit, create_offset_to_commit

if TYPE_CHECKING:
    from kio.schema.offset_commit.v10.request import (
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )
    from kio.schema.txn_offset_commit.v5.request import (
        TxnOffsetCommitRequestPartition,
        TxnOffsetCommitRequestTopic,
    )

RequestedTopic: TypeAlias = "OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic"
RequestedPartition: TypeAlias = "OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition"
NO_LEADER_EPOCH = -1  # of requests in versions without it
# The topics of a request or a response: name or id, and the partitions.
RequestedPartitions: TypeAlias = tuple[tuple[str | None, UUID | None, tuple[int, ...]], ...]


class RequestedOffsets:
    """Splits the partitions of a request into `offsets` to commit and codes for unknown ones.

    `found_topics`: the broker's topic for each of `topics`, or None where there is none, whose
    partitions get the code `unknown_topic`.
    """

    def __init__(
        self,
        topics: Sequence[RequestedTopic],
        found_topics: Sequence[BrokerTopic | None],
        unknown_topic: Code,
    ) -> None:
        self._topics = topics
        self._known_codes: list[list[Code | None]] = []  # None: the code of the next of `offsets`
        self.all_known = True
        self.columns = columns = _try_read_columns(topics, found_topics)
        if columns is not None:
            self.offsets: Collection[OffsetToCommit] = columns
            self._known_codes.append([None] * len(columns.partitions))
            return
        self.offsets = offsets = []
        for requested, topic in zip(topics, found_topics, strict=True):
            if topic is None:
                self._known_codes.append([unknown_topic] * len(requested.partitions))
                self.all_known = False
                continue
            count = len(topic.partitions)
            codes: list[Code | None] = []
            for partition in requested.partitions:
                if 0 <= partition.partition_index < count:
                    codes.append(None)
                    offsets.append(_to_commit_offset(topic, partition))
                else:
                    codes.append(Code.UNKNOWN_TOPIC_OR_PARTITION)
                    self.all_known = False
            self._known_codes.append(codes)

    def build_refusal_codes(self, code: Code) -> list[Code]:
        """Return the codes of `offsets` where the group or transaction refuses them with `code`."""
        return [translate_coordinator_code(code)] * len(self.offsets)

    @property
    def requested_partitions(self) -> RequestedPartitions:
        """Return the topics and partitions of the request, without the offsets."""
        if self.columns is not None:
            only = self._topics[0]
            name, topic_id = getattr(only, "name", None), getattr(only, "topic_id", None)
            return ((name, topic_id, self.columns.partitions),)
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

    def build_topics(self, codes: Iterable[Code]) -> list[dict[str, Any]]:
        """Build the topics of the response, with these codes for `offsets`."""
        following = iter(codes)
        return [
            _build_topic_result(
                topic, [next(following) if code is None else code for code in found]
            )
            for topic, found in zip(self._topics, self._known_codes, strict=True)
        ]


def build_refused_topics(topics: Iterable[RequestedTopic], code: Code) -> list[dict[str, Any]]:
    """Build the topics of a response that has the same code for every partition."""
    return [_build_topic_result(topic, [code] * len(topic.partitions)) for topic in topics]


def _build_topic_result(topic: RequestedTopic, codes: Iterable[Code]) -> dict[str, Any]:
    partitions: Sequence[RequestedPartition] = topic.partitions
    return {
        "name": getattr(topic, "name", None),
        "topic_id": getattr(topic, "topic_id", None),
        "partitions": [
            {"partition_index": partition.partition_index, "error_code": code}
            for partition, code in zip(partitions, codes, strict=True)
        ],
    }


def _try_read_columns(
    topics: Sequence[RequestedTopic], found_topics: Sequence[BrokerTopic | None]
) -> OffsetColumns | None:
    """Read the offsets of a request as columns.

    None if they are of several topics or have metadata, or if not all partitions exist.
    """
    topic = found_topics[0] if len(topics) == 1 else None
    if topic is None:
        return None
    requested: Sequence[Any] = topics[0].partitions
    if any(each.committed_metadata for each in requested):
        return None
    partitions = tuple([each.partition_index for each in requested])
    offsets = tuple([each.committed_offset for each in requested])
    leader_epochs = tuple(
        [getattr(each, "committed_leader_epoch", NO_LEADER_EPOCH) for each in requested]
    )
    if not partitions or min(partitions) < 0 or max(partitions) >= len(topic.partitions):
        return None
    return OffsetColumns(topic.name, topic.id, partitions, offsets, leader_epochs)


def _to_commit_offset(topic: BrokerTopic, partition: RequestedPartition) -> OffsetToCommit:
    """Convert one partition of a request; fields that its version lacks get Kafka's defaults."""
    return create_offset_to_commit(
        (
            topic.name,
            partition.partition_index,
            partition.committed_offset,
            getattr(partition, "committed_leader_epoch", NO_LEADER_EPOCH),
            partition.committed_metadata or "",
            topic.id,
        )
    )
