"""Test each step of a member towards its target assignment, which returns a new member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code, Refused
from coordinator.groups.consumer.reconcile import OwnedPartitions, reconcile_member
from coordinator.groups.consumer.record_types import MemberState
from coordinator.groups.consumer.state import ConsumerGroupMember

T, U = UUID(int=1), UUID(int=2)
STABLE = MemberState.STABLE
UNREVOKED, UNRELEASED = MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS
HAS_TWO = ConsumerGroupMember("m", epoch=3, previous_epoch=3, assigned={T: {0: 2, 1: 3}})


def step(
    member: ConsumerGroupMember,
    *target: int,
    epoch: int = 4,
    owned: OwnedPartitions = None,
    taken: Mapping[tuple[UUID, int], str] = {},
    subscribed: frozenset[UUID] = frozenset({T}),
    subscription_changed: bool = False,
) -> ConsumerGroupMember:
    """Reconcile a member with a target of these partitions of T."""

    def owner(topic_id: UUID, partition: int) -> str | None:
        for topics in (member.assigned, member.revoking):
            if partition in topics.get(topic_id, {}):
                return member.member_id
        return taken.get((topic_id, partition))

    return reconcile_member(
        member,
        epoch,
        {T: frozenset(target)} if target else {},
        subscribed,
        owned,
        owner,
        subscription_changed=subscription_changed,
    )


def test_who_is_stable_at_the_target_s_epoch_stays_the_very_same() -> None:
    assert step(HAS_TWO, 5, 6, epoch=3) is HAS_TWO


def test_partitions_that_are_free_come_with_the_target_s_epoch() -> None:
    after = step(HAS_TWO, 0, 1, 2)
    assert (after.state, after.epoch, after.previous_epoch) == (STABLE, 4, 3)
    assert after.assigned == {T: {0: 2, 1: 3, 2: 4}}, "each since the epoch at which it came"


def test_a_partition_that_is_taken_is_waited_for() -> None:
    waiting = step(HAS_TWO, 0, 1, 2, 3, taken={(T, 2): "other"})
    assert (waiting.state, waiting.epoch) == (UNRELEASED, 4)
    assert waiting.assigned == {T: {0: 2, 1: 3, 3: 4}}
    still = step(waiting, 0, 1, 2, 3, taken={(T, 2): "other"})
    assert (still.state, still.assigned) == (UNRELEASED, waiting.assigned)
    done = step(still, 0, 1, 2, 3)
    assert (done.state, done.assigned) == (STABLE, {T: {0: 2, 1: 3, 2: 4, 3: 4}})


def test_what_the_target_takes_has_to_be_given_up_before_the_next_epoch() -> None:
    revoking = step(HAS_TWO, 0, 2)
    assert (revoking.state, revoking.epoch) == (UNREVOKED, 3)
    assert (revoking.assigned, revoking.revoking) == ({T: {0: 2}}, {T: {1: 3}})
    assert step(revoking, 0, 2) is revoking, "it has said nothing"
    assert step(revoking, 0, 2, owned={T: frozenset({0, 1})}) is revoking, "it has it still"
    after = step(revoking, 0, 2, owned={T: frozenset({0})})
    assert (after.state, after.epoch, after.revoking) == (STABLE, 4, {})
    assert after.assigned == {T: {0: 2, 2: 4}}


def test_what_it_says_it_does_not_have_needs_no_revocation() -> None:
    after = step(HAS_TWO, 0, owned={})
    assert (after.state, after.epoch, after.assigned) == (STABLE, 4, {T: {0: 2}})


def test_a_partition_under_revocation_that_the_next_target_gives_back_is_given_anew() -> None:
    revoking = step(HAS_TWO, 0)
    after = step(revoking, 0, 1, epoch=5, owned={T: frozenset({0})})
    assert (after.state, after.epoch, after.assigned) == (STABLE, 5, {T: {0: 2, 1: 5}})


def test_of_a_topic_that_it_is_not_subscribed_to_it_gets_nothing_whatever_the_target_says() -> None:
    after = step(HAS_TWO, 0, 1, 2, subscribed=frozenset({U}), owned={})
    assert (after.epoch, after.assigned) == (4, {})


def test_a_topic_it_has_just_unsubscribed_from_is_revoked_without_a_new_target() -> None:
    fields: dict[str, Any] = {
        "epoch": 3,
        "subscribed": frozenset({U}),
        "subscription_changed": True,
    }
    revoking = step(HAS_TWO, 0, 1, **fields)
    assert (revoking.state, revoking.epoch) == (UNREVOKED, 3)
    assert (revoking.assigned, revoking.revoking) == ({}, HAS_TWO.assigned)
    given_up = step(replace(HAS_TWO, previous_epoch=2), 0, 1, owned={}, **fields)
    assert (given_up.state, given_up.assigned, given_up.revoking) == (STABLE, {}, {})
    assert given_up.previous_epoch == 3


def test_who_unsubscribes_in_the_middle_of_a_revocation_has_more_to_revoke() -> None:
    revoking = step(HAS_TWO, 0)
    fields: dict[str, Any] = {"subscribed": frozenset({U}), "subscription_changed": True}
    more = step(revoking, 0, owned={T: frozenset({0, 1})}, **fields)
    assert (more.state, more.assigned) == (UNREVOKED, {})
    assert more.revoking == {T: {0: 2, 1: 3}}


def test_a_member_in_a_state_of_a_newer_broker_has_to_give_up_all_it_has() -> None:
    unknown = replace(HAS_TWO, state=MemberState(99))
    for owned in (None, {T: frozenset({0})}):
        with pytest.raises(Refused) as refused:
            step(unknown, 0, owned=owned)
        assert refused.value.code is Code.FENCED_MEMBER_EPOCH
    after = step(unknown, 0, owned={})
    assert (after.state, after.epoch, after.assigned) == (STABLE, 4, {T: {0: 2}})
