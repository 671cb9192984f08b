"""Test the metrics of consumer groups."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.groups.counters import GroupCounters
from tests.unit.coordinator.groups.consumer.members import GROUP, Consumer, settle
from tests.unit.coordinator.world import World

Make = Callable[..., Consumer]


def counters_of(world: World) -> GroupCounters:
    return world.groups.shards[world.groups.partition_of(GROUP)].consumer_counters


def test_rebalances_are_counted_by_cause_and_last_until_all_members_are_stable(
    world: World, member: Make
) -> None:
    first, second = member("a"), member("b")
    first.join("six")
    found = counters_of(world)
    assert (
        found.rebalances,
        found.rebalance_times.count,
        round(found.rebalance_times.sum_s * 1_000),
    ) == ({"join": 1}, 1, 0)
    second.join("six")
    world.clock.advance(40)
    assert found.rebalance_times.count == 1
    settle(first, second)
    assert (
        found.rebalances,
        found.rebalance_times.count,
        round(found.rebalance_times.sum_s * 1_000),
    ) == ({"join": 2}, 2, 40)
    world.topics.grow("six", 7)
    settle(first, second)
    first.beat(topics=frozenset())
    settle(first, second)
    first.leave()
    assert found.rebalance_times.count == 4
    second.leave()
    assert found.rebalances == {"join": 2, "topics": 1, "subscription": 1, "leave": 2}
    assert found.rebalance_times.count == 5, "what the first leave began is over with the second"


def test_silence_is_counted_and_so_are_heartbeats(world: World, member: Make) -> None:
    someone = member("a")
    someone.join("six")
    someone.beat()
    world.clock.advance(45_000)
    found = counters_of(world)
    assert (found.heartbeats, found.sessions_expired) == (2, 1)
    assert found.rebalances == {"join": 1, "session": 1}


@pytest.mark.parametrize("by", ["DeleteGroups", "its offsets' expiry"])
def test_a_group_that_is_gone_leaves_nothing_in_memory(world: World, member: Make, by: str) -> None:
    someone = member("a")
    someone.join("six")
    someone.leave()
    shard = world.groups.shards[world.groups.partition_of(GROUP)]
    assert list(shard.transient_states) == [GROUP]
    if by == "DeleteGroups":
        world.delete_group(GROUP)
    else:
        world.clock.advance(world.offset_config.retention_check_interval_ms + 1)
    assert not shard.transient_states
    assert not shard.state.consumer
