"""Test which heartbeats are accepted, by member epoch, instance id and the group's size limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from coordinator.groups.consumer.config import ConsumerGroupConfig
from coordinator.groups.consumer.heartbeat import check_group_size
from coordinator.groups.consumer.state import ConsumerGroup, ConsumerGroupMember
from tests.unit.coordinator.groups.consumer.members import (
    REBALANCE_TIMEOUT_MS,
    Consumer,
    group_of,
    settle,
)
from tests.unit.coordinator.world import World, code_of

Make = Callable[..., Consumer]


@pytest.fixture
def behind(world: World, member: Make, topic_id: UUID) -> Consumer:
    """Return a member whose last response was lost: its new epoch has three partitions fewer."""
    first, second = member("a"), member("b")
    first.join("six")
    second.join("six")
    first.beat()  # its response revokes three partitions
    first.send(owned=first.has)  # it reports the revocation; the response is lost
    known = group_of(world).members["a"]
    assert (known.previous_epoch, known.epoch, first.epoch) == (2, 3, 2)
    assert first.partitions(topic_id) == [0, 1, 2]
    return first


def test_a_member_that_is_one_epoch_behind_goes_on_if_it_has_no_more_than_it_is_to_have(
    behind: Consumer, topic_id: UUID
) -> None:
    for partitions in ({0, 1, 2}, {1}, set[int]()):
        answer = behind.send(owned={topic_id: frozenset(partitions)})
        assert answer.epoch == 3, partitions
    assert behind.send(owned={}).epoch == 3


@pytest.mark.parametrize(
    "owned",
    [None, {"six": {0, 1, 2, 3}}, {"six": {3}}, {"six": {0}, "other": {0}}, {"other": {0}}],
    ids=str,
)
def test_a_member_that_is_one_epoch_behind_and_may_have_more_is_fenced(
    behind: Consumer, topic_id: UUID, owned: Mapping[str, set[int]] | None
) -> None:
    ids = {"six": topic_id, "other": UUID(int=1)}
    said = None if owned is None else {ids[name]: frozenset(owned[name]) for name in owned}
    assert code_of(behind.send, owned=said) is Code.FENCED_MEMBER_EPOCH


def test_a_member_that_is_two_epochs_behind_or_ahead_is_fenced(
    behind: Consumer, topic_id: UUID
) -> None:
    for epoch in (1, 4):
        assert code_of(behind.send, epoch=epoch, owned={}) is Code.FENCED_MEMBER_EPOCH


def test_a_member_that_still_has_to_revoke_is_at_its_epoch_and_at_no_older_one(
    world: World, member: Make, topic_id: UUID
) -> None:
    """Check that each step towards the target makes the epoch before it the previous one.

    That includes the step that begins a revocation, at which the epoch stays.
    """
    first = member("a")
    first.join("six")
    world.topics.grow("six", 7)
    first.beat()
    assert first.epoch == 3
    member("b").join("six")
    first.beat()
    known = group_of(world).members["a"]
    assert (known.state.name, known.previous_epoch, known.epoch) == ("UNREVOKED_PARTITIONS", 3, 3)
    assert code_of(first.send, epoch=2, owned={}) is Code.FENCED_MEMBER_EPOCH


# Assignments in responses


def test_a_member_is_told_what_it_is_to_have_when_that_changes_when_it_joins_and_when_it_says_all(
    member: Make, topic_id: UUID
) -> None:
    someone = member("a")
    answer = someone.join("six")
    assert answer.assigned == {topic_id: dict.fromkeys(range(6), 2)}
    everything: dict[str, Any] = {
        "topics": frozenset({"six"}),
        "owned": someone.has,
        "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
    }
    assert someone.send(**everything).assigned == answer.assigned
    for missing in everything:
        rest = {name: value for name, value in everything.items() if name != missing}
        assert someone.send(**rest).assigned is None, missing
    assert someone.send(epoch=0).assigned == answer.assigned


# Static members


def test_an_instance_id_is_taken_until_its_member_has_left_or_gone_away(member: Make) -> None:
    first, second = member("a", "one"), member("b", "one")
    first.join("six")
    assert code_of(second.join, "six") is Code.UNRELEASED_INSTANCE_ID
    first.leave(to_come_back=True)
    second.join("six")
    assert code_of(first.join, "six") is Code.UNRELEASED_INSTANCE_ID
    second.leave()
    first.join("six")


def test_who_takes_the_place_of_a_static_member_has_its_partitions_and_no_new_epoch(
    world: World, member: Make, topic_id: UUID
) -> None:
    first, other = member("a", "one"), member("b")
    first.join("six")
    other.join("six")
    settle(first, other)
    before = group_of(world).epoch
    first.leave(to_come_back=True)
    second = member("c", "one")
    answer = second.join("six")
    assert (answer.epoch, second.partitions(topic_id)) == (before, first.partitions(topic_id))
    assert (group_of(world).epoch, set(group_of(world).members)) == (before, {"b", "c"})
    known = group_of(world).members["c"]
    assert known.previous_epoch == 0, "of its life before nothing can arrive late"
    for request in (first.beat, first.leave):
        assert code_of(request) is Code.FENCED_INSTANCE_ID


def test_an_instance_id_that_nobody_has_is_unknown(member: Make) -> None:
    someone = member("a", "one")
    someone.join("six")
    someone.instance_id = "two"
    assert code_of(someone.beat) is Code.UNKNOWN_MEMBER_ID


# Size limit


def test_a_full_group_has_room_for_its_members_only() -> None:
    config = ConsumerGroupConfig(max_size=2)
    group = ConsumerGroup("g")
    group.members["a"] = ConsumerGroupMember("a")
    for newcomer in ("b", None):
        check_group_size(group, newcomer, config)
    group.members["b"] = ConsumerGroupMember("b")
    for newcomer in ("c", None):
        assert code_of(check_group_size, group, newcomer, config) is Code.GROUP_MAX_SIZE_REACHED
    for known in group.members:
        check_group_size(group, known, config)
