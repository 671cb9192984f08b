"""Test that only a changed subscription or changed topics bump a group's epoch, and once."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.groups.consumer.topics import compute_metadata_hash
from tests.unit.coordinator.groups.consumer.members import Consumer, group_of, settle
from tests.unit.coordinator.world import World

Make = Callable[..., Consumer]


def has_metadata_of(world: World, *topics: str) -> bool:
    """Return whether the group's metadata have exactly these topics.

    Otherwise the next check of the topics brings another epoch.
    """
    return group_of(world).metadata_hash == compute_metadata_hash(topics, world.topics)


def trigger_topic_check(world: World, *members: Consumer) -> None:
    """Create an unrelated topic and send heartbeats, so that the group checks its topics."""
    world.topics.create(f"other-{world.topics.version}", 1)
    world.clock.advance(11_000)
    settle(*members)


def test_topics_that_only_a_member_that_is_gone_was_subscribed_to_are_not_the_group_s(
    world: World, member: Make
) -> None:
    stays, goes = member("a"), member("b")
    stays.join("six")
    goes.join("six", "words")
    settle(stays, goes)
    assert has_metadata_of(world, "six", "words")
    goes.leave()
    assert has_metadata_of(world, "six")
    epoch = group_of(world).epoch
    trigger_topic_check(world, stays)
    assert group_of(world).epoch == epoch


def test_topics_that_a_member_has_unsubscribed_from_are_not_the_group_s(
    world: World, member: Make
) -> None:
    someone, other = member("a"), member("b")
    someone.join("six", "words")
    other.join("words")
    someone.beat(topics=frozenset({"six"}))
    assert has_metadata_of(world, "six", "words"), "the other one's still"
    other.beat(topics=frozenset({"six"}))
    assert has_metadata_of(world, "six")


def test_topics_of_an_expression_go_with_its_last_subscriber(world: World, member: Make) -> None:
    someone, other = member("a"), member("b")
    for each in (someone, other):
        each.join("six", regex="w.*")
    settle(someone, other)
    assert has_metadata_of(world, "six", "words")
    someone.beat(regex="")
    assert has_metadata_of(world, "six", "words"), "the other one's still"
    other.beat(regex="")
    assert has_metadata_of(world, "six")


def test_topics_of_an_expression_go_with_the_last_member_that_had_it(
    world: World, member: Make
) -> None:
    stays, first, last = member("a"), member("b"), member("c")
    stays.join("six")
    for each in (first, last):
        each.join("six", regex="w.*")
    settle(stays, first, last)
    first.leave()
    assert has_metadata_of(world, "six", "words")
    last.leave()
    assert has_metadata_of(world, "six")


def test_a_topic_that_grows_brings_one_epoch_and_another_one_s_none(
    world: World, member: Make
) -> None:
    someone = member("a")
    someone.join("six")
    epoch = group_of(world).epoch
    trigger_topic_check(world, someone)
    assert group_of(world).epoch == epoch
    world.topics.grow("six", 7)
    trigger_topic_check(world, someone)
    assert group_of(world).epoch == epoch + 1
