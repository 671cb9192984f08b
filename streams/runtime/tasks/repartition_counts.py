"""Keep the partition counts that the repartition topics had when a thread wrote to them first.

A repartition topic has as many partitions as there are tasks that read it: the group's leader
refuses another number before tasks begin. If somebody adds partitions while the application runs,
a producer notices, and would spread the keys over all of them: nobody reads the new ones, and
records there would be lost without a word. So records are divided among the first ones alone. Kafka
Streams leaves it to the producer.
"""

from __future__ import annotations

from collections.abc import Callable


class RepartitionCountCache:
    """Remembers how many partitions of each repartition topic are read, for one thread."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def get_or_fetch_count(self, topic: str, fetch_partition_count: Callable[[str], int]) -> int:
        """Return a topic's partition count as first fetched, and fetch it if it never was."""
        count = self._counts.get(topic)
        if count is None:
            count = self._counts[topic] = fetch_partition_count(topic)
        return count
