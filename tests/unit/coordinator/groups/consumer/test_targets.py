"""Test when the next target assignment is computed, and by which assignor."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from coordinator.groups.consumer.config import ConsumerGroupConfig, ConsumerGroupSettings
from coordinator.groups.consumer.target import select_assignor
from tests.unit.coordinator.groups.consumer.members import GROUP, Consumer, group_of, settle
from tests.unit.coordinator.world import World

Make = Callable[..., Consumer]


def test_targets_are_the_assignment_interval_apart(
    world: World, member: Make, topic_id: UUID
) -> None:
    world.group_settings[GROUP] = ConsumerGroupSettings(assignment_interval_ms=1_000)
    first, second, third = member("a"), member("b"), member("c")
    assert first.join("six").epoch == 2, "the first one at once"
    second.join("six")
    third.join("six")
    assert (second.epoch, second.has) == (2, {}), "with the target that there is"
    group = group_of(world)
    assert (group.epoch, group.target_epoch, group.phase.value) == (4, 2, "Assigning")
    world.clock.advance(999)
    second.beat()
    assert group.target_epoch == 2
    world.clock.advance(1)
    second.beat()
    assert (group.epoch, group.target_epoch) == (4, 4), "for both newcomers at once"
    settle(first, second, third)
    assert [len(each.partitions(topic_id)) for each in (first, second, third)] == [2, 2, 2]


def test_the_interval_is_remembered_over_a_restart(world: World, member: Make) -> None:
    world.group_settings[GROUP] = ConsumerGroupSettings(assignment_interval_ms=1_000)
    first, second = member("a"), member("b")
    first.join("six")
    world.restart()
    second.join("six")
    assert group_of(world).target_epoch == 2


def test_an_assignor_that_members_no_longer_ask_for_is_not_taken(
    world: World, member: Make
) -> None:
    first, second = member("a"), member("b")
    first.join("six", assignor="range")
    group = group_of(world)
    assert select_assignor(group, "uniform") == "range"
    second.join("six", assignor="uniform")
    assert select_assignor(group, "range") == "uniform", "on a tie"
    second.leave()
    first.leave()
    assert select_assignor(group, "range") == "range", "nobody asks for one"


def test_an_assignor_that_only_another_broker_has_is_not_asked_for(
    world: World, member: Make
) -> None:
    member("a").join("six", assignor="org.example.Best")  # as Kafka may have accepted it
    assert select_assignor(group_of(world), "uniform") == "uniform"


def test_a_group_s_setting_outside_the_broker_s_limits_counts_as_the_limit() -> None:
    config = ConsumerGroupConfig()
    assert config.resolve_settings({}) == ConsumerGroupSettings(45_000, 5_000, 1_000)
    assert config.resolve_settings({"share.session.timeout.ms": "1"}) == ConsumerGroupSettings()
    found = config.resolve_settings(
        {
            "consumer.session.timeout.ms": "1",
            "consumer.heartbeat.interval.ms": "99999",
            "consumer.assignment.interval.ms": "7",
        }
    )
    assert found == ConsumerGroupSettings(45_000, 15_000, 7)
