"""Provide the in-memory cluster of `streams.testing` with the operations that only tests need."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streams.common.topic_partitions import Partition
from streams.testing.cluster import InMemoryCluster, InMemoryLog

_NO_TOPICS: Mapping[str, int] = {}
FindRefusal = Callable[[str, bytes | None, bytes | None], int]
"""Takes topic, key and value."""


def _refuse_nothing(topic: str, key: bytes | None, value: bytes | None) -> int:
    return 0


class Kafka(InMemoryCluster):
    """Represents an in-memory cluster with these topics, each with its number of partitions."""

    def __init__(self, topics: Mapping[str, int] = _NO_TOPICS) -> None:
        super().__init__()
        self.generations_over = 0
        """This many of the next offset commits are from members that the group has replaced."""
        self.find_refusal: FindRefusal = _refuse_nothing
        """Returns the code with which brokers refuse a record, and its batch; 0 for others."""
        for topic, partitions in topics.items():
            self.create_topic(topic, partitions)

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions to a topic until it has `partitions` of them."""
        before = self.partitions_of(topic)
        self.partition_counts[topic] = partitions
        self.logs |= {p: InMemoryLog() for p in self.partitions_of(topic)[len(before) :]}

    def delete(self, topic: str) -> None:
        for partition in self.partitions_of(topic):
            del self.logs[partition]
        del self.partition_counts[topic]

    def load(self, partition: Partition, *pairs: tuple[str | None, str | None]) -> None:
        """Append plain records, each with its offset as its timestamp."""
        for key, value in pairs:
            encoded = [None if each is None else each.encode() for each in (key, value)]
            self.append_record(
                partition, encoded[0], encoded[1], self.logs[partition].high_watermark
            )

    def committed(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Return keys and values that a read_committed reader sees, partition by partition."""
        logs = [self.logs[partition] for partition in self.partitions_of(topic)]
        return [
            (message.key(), message.value()) for log in logs for message in log.read_committed(0)
        ]
