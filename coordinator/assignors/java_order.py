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

_MIN_TABLE_SIZE = 16


def sort_like_hash_map(keys: Iterable[str]) -> list[str]:
    """Return distinct keys in the order of a Java HashMap into which they were put one by one."""
    distinct = list(dict.fromkeys(keys))
    return _sort_by_bucket(distinct, _grow_table(_MIN_TABLE_SIZE, len(distinct)))


def sort_like_computed_hash_map(keys: Iterable[str], capacity: int | None = None) -> list[str]:
    """Return distinct keys in the order of a HashMap filled by `computeIfAbsent` for each key.

    That puts a new key first in its bucket, not last. It makes the table larger before it looks for
    the key, whether that is new or not. `capacity`: the one that the map was made with, if any.
    """
    all_keys = list(keys)
    distinct = list(dict.fromkeys(all_keys))
    table_size = _MIN_TABLE_SIZE if capacity is None else 1 << max(0, capacity - 1).bit_length()
    return _sort_by_bucket(distinct[::-1], _grow_table(table_size, len(set(all_keys[:-1]))))


class JavaPartitionSet:
    """Holds partitions like a Java HashSet of TopicPartition, to find its first element."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], None] = {}
        self._table_size = _MIN_TABLE_SIZE

    def __bool__(self) -> bool:
        return bool(self._partitions)

    def add_partition(self, partition: tuple[str, int]) -> None:
        self._partitions[partition] = None
        self._table_size = _grow_table(self._table_size, len(self._partitions))

    def remove_partition(self, partition: tuple[str, int]) -> None:
        del self._partitions[partition]

    def first_partition(self) -> tuple[str, int]:
        return min(
            self._partitions, key=lambda each: _bucket_of(_hash_partition(each), self._table_size)
        )


def _grow_table(table_size: int, key_count: int) -> int:
    while key_count * 4 > table_size * 3:
        table_size *= 2
    return table_size


def _sort_by_bucket(keys: list[str], table_size: int) -> list[str]:
    mask = table_size - 1
    bucket_of = {key: _spread_hash(java_hash(key)) & mask for key in keys}
    return sorted(keys, key=bucket_of.__getitem__)


def _bucket_of(hash_code: int, table_size: int) -> int:
    return _spread_hash(hash_code) & (table_size - 1)


def _spread_hash(hash_code: int) -> int:
    return hash_code ^ hash_code >> 16


def _hash_partition(partition: tuple[str, int]) -> int:
    topic, number = partition
    return (31 * (31 + number) + java_hash(topic)) & 0xFFFFFFFF
