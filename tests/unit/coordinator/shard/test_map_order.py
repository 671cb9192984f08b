"""Test the order of lists against that of Kafka 4.3, from which the expected lists were taken."""

from __future__ import annotations

import pytest

from coordinator.shard.map_order import sort_like_concurrent_map, sort_like_timeline_map

MEMBERS = {2: [2, 1], 3: [3, 2, 1], 7: [3, 5, 7, 2, 4, 6, 1]}
FIRST_SHARDS = {4: [0, 3, 1, 2], 50: [13, 46, 9, 42]}


@pytest.mark.parametrize("count", MEMBERS)
def test_keys_come_as_in_a_timeline_hash_map_of_kafka(count: int) -> None:
    members = [f"member-{number}" for number in range(1, count + 1)]
    assert [int(each[-1]) for each in sort_like_timeline_map(members)] == MEMBERS[count]


def test_the_last_key_of_a_slot_comes_first() -> None:
    assert sort_like_timeline_map(["Aa", "BB"]) == ["BB", "Aa"]  # one hash
    assert sort_like_timeline_map(["BB", "Aa"]) == ["Aa", "BB"]


@pytest.mark.parametrize("count", FIRST_SHARDS)
def test_shards_come_as_in_a_concurrent_hash_map_of_java(count: int) -> None:
    found = sort_like_concurrent_map("__consumer_offsets", count)
    assert sorted(found) == list(range(count))
    assert found[:4] == FIRST_SHARDS[count]
