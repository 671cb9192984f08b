"""Order keys as the maps of Kafka's coordinators iterate over them, for answers that list them.

Clients and tools print lists in the order of the answer, and Kafka sorts none: groups, and members
of a consumer group, come in the order of a TimelineHashMap, and the shards in that of a
ConcurrentHashMap. Both tables have 2^n places and grow with what is put into them. They never
shrink, which is not followed here: the size is that for the keys that are there.
Source: org.apache.kafka.timeline.{BaseHashTable, SnapshottableHashTable}.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.shard.placement import java_hash

_FIBONACCI = 0x9E3779B97F4A7C15  # as an unsigned number; java: -7046029254386353131
_UINT64 = 0xFFFFFFFFFFFFFFFF
_SMALLEST_TIMELINE, _SMALLEST_CONCURRENT = 2, 16


def sort_like_timeline_map(keys: Iterable[str]) -> list[str]:
    """Return distinct keys in the order of a TimelineHashMap into which they were put one by one.

    The last one of a slot comes first.
    """
    newest_first = list(keys)[::-1]
    size = _SMALLEST_TIMELINE
    while len(newest_first) * 3 > size * 4:
        size *= 2
    shift = 65 - size.bit_length()
    return sorted(newest_first, key=lambda key: _spread_hash(key) >> shift)


def sort_like_concurrent_map(topic: str, partition_count: int) -> list[int]:
    """Return the partitions of a topic in the order of a ConcurrentHashMap by TopicPartition."""
    size = _SMALLEST_CONCURRENT
    while partition_count * 4 >= size * 3:
        size *= 2
    topic_hash = java_hash(topic)

    def find_bin(partition: int) -> int:
        code = (31 * (31 + partition) + topic_hash) & 0xFFFFFFFF
        return (code ^ code >> 16) & (size - 1)

    return sorted(range(partition_count), key=find_bin)


def _spread_hash(key: str) -> int:
    code = java_hash(key)
    if code >= 0x80000000:
        code -= 0x100000000
    return code * _FIBONACCI & _UINT64
