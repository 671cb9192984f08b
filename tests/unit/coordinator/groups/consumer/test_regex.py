"""Test that regular expressions are resolved in the background, and not too often."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.regex import resolve_regexes, validate_regex
from tests.unit.coordinator.fakes import FakeBackground
from tests.unit.coordinator.groups.consumer.members import Consumer, group_of
from tests.unit.coordinator.world import World

Make = Callable[..., Consumer]


@pytest.fixture
def world(world: World) -> World:
    """Return a world whose background work is done when a test says so."""
    world.background = FakeBackground(at_once=False)
    world.restart()
    return world


def join(someone: Consumer, regex: str) -> None:
    someone.join(topics=None, regex=regex)


def test_until_it_is_resolved_an_expression_stands_for_no_topic(
    world: World, member: Make, topic_id: UUID
) -> None:
    someone = member("a")
    join(someone, "s.x")
    someone.beat()
    assert (someone.has, someone.epoch) == ({}, 1)
    assert len(world.background.waiting) == 1, "one look, however many heartbeats"
    world.background.run_all()
    assert someone.beat().epoch == 2
    assert someone.partitions(topic_id) == [0, 1, 2, 3, 4, 5]


def test_a_topic_that_is_made_is_found_but_no_sooner_than_10_seconds_after_the_last_look(
    world: World, member: Make
) -> None:
    someone = member("a")
    join(someone, "s.*")
    world.background.run_all()
    later = world.topics.create("seven", 7)
    world.clock.advance(10_000)
    someone.beat()
    assert not world.background.waiting
    world.clock.advance(1)
    someone.beat()
    world.background.run_all()
    someone.beat()
    assert len(someone.partitions(later)) == 7


def test_expressions_are_looked_at_again_when_the_refresh_interval_is_over(
    world: World, member: Make
) -> None:
    someone = member("a")
    join(someone, "s.*")
    world.background.run_all()
    for _ in range(20):
        world.clock.advance(30_000)
        someone.beat()
        assert not world.background.waiting
    world.clock.advance(1)
    someone.beat()
    assert world.background.waiting
    epoch = group_of(world).epoch
    world.background.run_all()
    assert group_of(world).epoch == epoch, "nothing new was found"


def test_a_topic_that_is_deleted_goes_at_once(world: World, member: Make, topic_id: UUID) -> None:
    someone = member("a")
    join(someone, "s.*")
    world.background.run_all()
    someone.beat()
    world.topics.delete("six")
    assert someone.beat().assigned == {}


def test_an_expression_goes_with_its_last_subscriber(world: World, member: Make) -> None:
    first, second = member("a"), member("b")
    join(first, "s.*")
    world.background.run_all()
    join(second, "s.*")
    first.beat(regex="")
    assert set(group_of(world).resolved_regexes) == {"s.*"}
    second.leave()
    assert not group_of(world).resolved_regexes


def test_what_is_found_after_everybody_has_gone_is_nothing(world: World, member: Make) -> None:
    someone = member("a")
    join(someone, "s.*")
    someone.leave()
    epoch = group_of(world).epoch
    world.background.run_all()
    assert (group_of(world).resolved_regexes, group_of(world).epoch) == ({}, epoch)


def test_what_is_found_after_the_group_has_gone_is_nothing(world: World, member: Make) -> None:
    someone = member("a")
    join(someone, "s.*")
    someone.leave()
    world.delete_group(someone.group_id)
    world.background.run_all()
    assert not any(shard.state.consumer for shard in world.groups.shards)


def test_what_is_found_and_can_not_be_persisted_is_looked_for_again(
    world: World, member: Make, topic_id: UUID
) -> None:
    someone = member("a")
    join(someone, "s.x")
    for log in world.group_logs:
        log.fail_after = 0
    world.background.run_all()
    for log in world.group_logs:
        log.fail_after = None
    someone.beat()
    world.background.run_all()
    someone.beat()
    assert someone.partitions(topic_id) == [0, 1, 2, 3, 4, 5]


def test_a_topic_made_while_nothing_can_be_persisted_is_found_afterwards(
    world: World, member: Make
) -> None:
    someone = member("a")
    join(someone, "s.*")
    world.background.run_all()
    later = world.topics.create("seven", 7)
    world.clock.advance(10_001)
    someone.beat()
    for log in world.group_logs:
        log.fail_after = 0
    world.background.run_all()
    for log in world.group_logs:
        log.fail_after = None
    world.clock.advance(10_001)
    someone.beat()
    world.background.run_all()
    someone.beat()
    assert len(someone.partitions(later)) == 7


def test_another_expression_in_the_place_of_one_is_resolved(world: World, member: Make) -> None:
    someone = member("a")
    join(someone, "nothing")
    world.background.run_all()
    world.clock.advance(10_001)
    someone.beat(regex="s.*")
    world.background.run_all()
    someone.beat()
    assert len(someone.has) == 1


@pytest.mark.parametrize("regex", ["[", "(", "*", "(?=a)", r"\1", "a{1001}"])
def test_what_is_no_expression_of_re2_is_refused(regex: str) -> None:
    with pytest.raises(Refused, match="is not a valid regular expression: ") as refused:
        validate_regex(regex)
    assert refused.value.code is Code.INVALID_REGULAR_EXPRESSION


def test_names_match_as_a_whole() -> None:
    found = resolve_regexes(["a", "a.*", "["], ["a", "ab", "ba"])
    assert found == {"a": {"a"}, "a.*": {"a", "ab"}, "[": set()}
