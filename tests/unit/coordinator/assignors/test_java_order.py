"""Test the iteration order of Java's hash maps against examples that Java 17 printed."""

from __future__ import annotations

from coordinator.assignors.java_order import (
    JavaPartitionSet,
    sort_like_computed_hash_map,
    sort_like_hash_map,
)

KEYS = [f"topic-{number}" for number in range(0, 91, 7)]
COLLIDING = ["AaAa", "BBBB", "AaBB", "BBAa", "é", "😀"]


def numbers(keys: list[str]) -> list[int]:
    return [int(key.removeprefix("topic-")) for key in keys]


def test_a_map_of_twelve_has_sixteen_buckets() -> None:
    assert numbers(sort_like_hash_map(KEYS[:12])) == [35, 7, 14, 49, 28, 70, 0, 63, 42, 21, 77, 56]


def test_a_map_of_thirteen_has_twice_as_many() -> None:
    assert numbers(sort_like_hash_map(KEYS)) == [7, 70, 0, 84, 63, 42, 21, 77, 56, 35, 14, 49, 28]


def test_keys_of_one_bucket_go_by_insertion() -> None:
    assert sort_like_hash_map(COLLIDING) == ["😀", "é", "AaAa", "BBBB", "AaBB", "BBAa"]


def test_computed_keys_go_the_other_way() -> None:
    assert sort_like_computed_hash_map(COLLIDING) == ["😀", "é", "BBAa", "AaBB", "BBBB", "AaAa"]


def test_a_computed_map_grows_when_the_next_key_is_asked_for() -> None:
    full = [35, 14, 7, 49, 28, 70, 84, 0, 63, 42, 21, 77, 56]
    assert numbers(sort_like_computed_hash_map(KEYS)) == full
    grown = [7, 70, 84, 0, 63, 42, 21, 77, 56, 35, 14, 49, 28]
    assert numbers(sort_like_computed_hash_map([*KEYS, KEYS[0]])) == grown


def test_the_first_of_a_set_of_partitions_changes_as_the_set_grows() -> None:
    partitions = JavaPartitionSet()
    firsts = []
    for number in (*range(20, -1, -3), *range(21, 40)):
        partitions.add_partition(("orders", number))
        firsts.append(partitions.first_partition()[1])
    assert firsts == [20, 17, 14, 11, *[8] * 5, 23, 23, 23, *[8] * 13, 39]


def test_a_set_stays_as_large_when_partitions_leave_it() -> None:
    partitions = JavaPartitionSet()
    for number in range(13):
        partitions.add_partition(("orders", number))
    first = partitions.first_partition()
    for number in range(13):
        if ("orders", number) != first:
            partitions.remove_partition(("orders", number))
    assert partitions.first_partition() == first
    partitions.remove_partition(first)
    assert not partitions
