"""Test that members are fenced when a session or rebalance timeout ends."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.config import ConsumerGroupSettings
from tests.unit.coordinator.groups.consumer.members import (
    GROUP,
    REBALANCE_TIMEOUT_MS,
    Consumer,
    group_of,
    settle,
)
from tests.unit.coordinator.world import World

SESSION_MS = 45_000
Make = Callable[..., Consumer]


def members_of(world: World) -> set[str]:
    return set(group_of(world).members)


def test_a_member_that_is_not_heard_of_for_a_session_is_out(world: World, member: Make) -> None:
    someone = member("a")
    someone.join("six")
    world.clock.advance(SESSION_MS - 1)
    assert members_of(world) == {"a"}
    someone.beat()
    world.clock.advance(SESSION_MS - 1)
    assert members_of(world) == {"a"}, "the heartbeat began a new session"
    world.clock.advance(1)
    assert members_of(world) == set()
    assert group_of(world).epoch == 3
    with pytest.raises(Refused) as refused:
        someone.beat()
    assert refused.value.code is Code.UNKNOWN_MEMBER_ID


def test_a_group_s_own_session_timeout_holds_from_the_next_heartbeat_on(
    world: World, member: Make
) -> None:
    someone = member("a")
    someone.join("six")
    world.group_settings[GROUP] = ConsumerGroupSettings(session_timeout_ms=60_000)
    someone.beat()
    world.clock.advance(60_000 - 1)
    assert members_of(world) == {"a"}
    world.clock.advance(1)
    assert members_of(world) == set()


def test_a_refused_heartbeat_is_none(world: World, member: Make) -> None:
    someone = member("a")
    someone.join("six")
    world.clock.advance(SESSION_MS - 1)
    with pytest.raises(Refused):
        someone.send(epoch=77)
    world.clock.advance(1)
    assert members_of(world) == set()


def test_a_member_that_does_not_revoke_in_its_time_is_out(
    world: World, member: Make, topic_id: UUID
) -> None:
    first, second = member("a"), member("b")
    first.join("six")
    second.join("six")
    first.take(first.send())
    for _ in range(REBALANCE_TIMEOUT_MS // 30_000 - 1):
        world.clock.advance(30_000)
        first.send()  # alive, but it reports no revocation
        second.beat()
    world.clock.advance(30_000 - 1)
    assert members_of(world) == {"a", "b"}
    second.beat()
    world.clock.advance(1)
    assert members_of(world) == {"b"}
    second.beat()
    assert second.partitions(topic_id) == [0, 1, 2, 3, 4, 5]


def test_a_member_that_has_revoked_has_no_more_time_to_watch(world: World, member: Make) -> None:
    first, second = member("a"), member("b")
    first.join("six")
    second.join("six")
    first.take(first.send())
    first.beat()
    for _ in range(REBALANCE_TIMEOUT_MS // 30_000 + 1):
        world.clock.advance(30_000)
        settle(first, second)
    assert members_of(world) == {"a", "b"}


def test_after_a_restart_each_member_has_a_whole_session_and_its_whole_time_to_revoke(
    world: World, member: Make
) -> None:
    first, second = member("a"), member("b")
    first.join("six")
    second.join("six")
    first.take(first.send())
    world.clock.advance(SESSION_MS - 1)
    world.restart()
    world.clock.advance(SESSION_MS - 1)
    assert members_of(world) == {"a", "b"}
    left_ms = REBALANCE_TIMEOUT_MS - (SESSION_MS - 1)
    while left_ms > 0:
        first.send()
        second.beat()
        assert members_of(world) == {"a", "b"}
        world.clock.advance(min(30_000, left_ms))
        left_ms -= 30_000
    assert members_of(world) == {"b"}


def test_a_static_member_that_does_not_come_back_is_out_after_a_session(
    world: World, member: Make
) -> None:
    someone = member("a", "one")
    someone.join("six")
    world.clock.advance(20_000)
    someone.leave(to_come_back=True)
    world.clock.advance(SESSION_MS - 20_000 - 1)
    assert members_of(world) == {"a"}
    world.clock.advance(1)
    assert members_of(world) == set()


def test_a_static_member_that_has_left_with_something_to_revoke_has_its_session_to_come_back_in(
    world: World, member: Make
) -> None:
    first, second = member("a", "one"), member("b")
    first.join("six", rebalance_timeout_ms=20_000)
    second.join("six")
    first.take(first.send())
    first.leave(to_come_back=True)
    world.clock.advance(SESSION_MS - 1)
    assert members_of(world) == {"a", "b"}
    world.clock.advance(1)
    assert members_of(world) == set()


def test_a_member_that_cannot_be_put_out_for_now_is_put_out_a_little_later(
    world: World, member: Make
) -> None:
    member("a").join("six")
    for log in world.group_logs:
        log.fail_after = 0
    world.clock.advance(SESSION_MS)
    assert members_of(world) == {"a"}
    for log in world.group_logs:
        log.fail_after = None
    world.clock.advance(1_000)
    assert members_of(world) == set()


def test_nothing_is_waited_for_in_a_group_without_members(world: World, member: Make) -> None:
    before = world.clock.scheduled()
    someone = member("a")
    someone.join("six")
    someone.leave()
    world.clock.advance(SESSION_MS + 1)
    assert world.clock.scheduled() == before
