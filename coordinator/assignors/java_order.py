"""Order keys as a HashMap of Java iterates over them.

Kafka's assignors iterate over hash maps, and what they return depends on it: which of two members
that have equally many partitions keeps one more, and the order of the topics within an assignment.
Whoever leads a group next may be a Java client, so our answer is the same as Kafka's, and this
order with it.

A map has 2^n buckets, 16 at first and twice as many once more than three quarters of that are in it
(never fewer again). Keys go by their bucket, then in the order in which they came. (Java makes a
tree of a bucket of eight or more, which is not followed here: with a table that is never more than
three quarters full that takes keys that were chosen for it.)
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.shard.placement import java_hash

_TABLE_MIN = 16


def hash_order(keys: Iterable[str]) -> list[str]:
    """Return distinct keys in the order of a HashMap that they were put into in turn."""
    distinct = list(dict.fromkeys(keys))
    return _by_bucket(distinct, _grown(_TABLE_MIN, len(distinct)))


def computed_order(keys: Iterable[str]) -> list[str]:
    """Return distinct keys in the order of a HashMap filled by `computeIfAbsent` for each key.

    That puts a new key first in its bucket, not last. It makes the table larger before it looks for
    the key, whether that is new or not.
    """
    all_keys = list(keys)
    distinct = list(dict.fromkeys(all_keys))
    return _by_bucket(distinct[::-1], _grown(_TABLE_MIN, len(set(all_keys[:-1]))))


class PartitionSet:
    """Holds partitions like a Java HashSet of TopicPartition, to find its first element."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], None] = {}
        self._table = _TABLE_MIN

    def __bool__(self) -> bool:
        return bool(self._partitions)

    def add(self, partition: tuple[str, int]) -> None:
        self._partitions[partition] = None
        self._table = _grown(self._table, len(self._partitions))

    def remove(self, partition: tuple[str, int]) -> None:
        del self._partitions[partition]

    def first(self) -> tuple[str, int]:
        return min(self._partitions, key=lambda each: _bucket(_partition_hash(each), self._table))


def _grown(table: int, size: int) -> int:
    while size * 4 > table * 3:
        table *= 2
    return table


def _by_bucket(keys: list[str], table: int) -> list[str]:
    return sorted(keys, key=lambda key: _bucket(java_hash(key), table))


def _bucket(hash_code: int, table: int) -> int:
    return (hash_code ^ hash_code >> 16) & (table - 1)


def _partition_hash(partition: tuple[str, int]) -> int:
    topic, number = partition
    return (31 * (31 + number) + java_hash(topic)) & 0xFFFFFFFF
