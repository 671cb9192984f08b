"""Test that each partition has one owner, whatever records a compaction has left of a log."""

from __future__ import annotations

from uuid import UUID

import pytest

from coordinator.groups.consumer.apply import apply_record
from coordinator.groups.consumer.record_types import (
    ConsumerGroupForgotten,
    ConsumerMemberForgotten,
    ConsumerMemberSaved,
    CurrentAssignmentForgotten,
    CurrentAssignmentSaved,
    MemberState,
    TargetAssignmentForgotten,
)
from coordinator.groups.consumer.state import ConsumerGroup
from coordinator.shard.decision import LogRecordOrigin

T = UUID(int=1)
LIVE, LOADING = LogRecordOrigin(0), LogRecordOrigin(0, replaying=True)


def has(member_id: str, *partitions: int, epoch: int = 2) -> CurrentAssignmentSaved:
    return CurrentAssignmentSaved(
        group_id="g",
        member_id=member_id,
        epoch=epoch,
        previous_epoch=epoch,
        state=MemberState.STABLE,
        assigned={T: dict.fromkeys(partitions, epoch)} if partitions else {},
        revoking={},
    )


def said(member_id: str, instance_id: str | None = None) -> ConsumerMemberSaved:
    return ConsumerMemberSaved(
        "g", member_id, instance_id, None, "client", "/host", ("t",), "", 1_000, None
    )


@pytest.fixture
def groups() -> dict[str, ConsumerGroup]:
    return {}


def test_a_partition_that_somebody_has_is_given_to_nobody_else(
    groups: dict[str, ConsumerGroup],
) -> None:
    apply_record(groups, has("a", 0, 1), LIVE)
    with pytest.raises(AssertionError, match="is given to b, and a has it"):
        apply_record(groups, has("b", 1), LIVE)


def test_while_a_log_is_loaded_the_later_record_holds(groups: dict[str, ConsumerGroup]) -> None:
    apply_record(groups, has("a", 0, 1), LOADING)
    apply_record(groups, has("b", 1), LOADING)
    assert groups["g"].owners == {T: {0: "a", 1: "b"}}
    apply_record(groups, has("a", 0), LOADING)
    assert groups["g"].owners == {T: {0: "a", 1: "b"}}


def test_two_who_were_loaded_with_one_partition_go_on_until_one_gives_it_up(
    groups: dict[str, ConsumerGroup],
) -> None:
    apply_record(groups, has("a", 0, 1), LOADING)
    apply_record(groups, has("b", 1), LOADING)
    apply_record(groups, has("a", 0, 1, 2, epoch=3), LIVE)
    assert groups["g"].owners == {T: {0: "a", 1: "b", 2: "a"}}
    apply_record(groups, has("b", epoch=3), LIVE)
    apply_record(groups, has("a", 0, 1, epoch=4), LIVE)
    assert groups["g"].owners == {T: {0: "a", 1: "a"}}


def test_a_member_s_end_frees_what_it_has_in_any_part_of_it(
    groups: dict[str, ConsumerGroup],
) -> None:
    for end in (CurrentAssignmentForgotten("g", "a"), ConsumerMemberForgotten("g", "a")):
        apply_record(groups, said("a", "one"), LOADING)
        apply_record(groups, has("a", 0), LOADING)
        apply_record(groups, end, LOADING)
        assert groups["g"].owners == {}
    assert (groups["g"].members, groups["g"].static_members) == ({}, {})
    assert groups["g"].subscriber_counts == {}


def test_the_end_of_what_is_not_there_is_nothing(groups: dict[str, ConsumerGroup]) -> None:
    for end in (
        CurrentAssignmentForgotten("g", "a"),
        TargetAssignmentForgotten("g", "a"),
        ConsumerMemberForgotten("g", "a"),
        ConsumerGroupForgotten("g"),
    ):
        apply_record(groups, end, LIVE)
    assert groups == {}


def test_a_group_does_not_end_while_somebody_is_in_it(groups: dict[str, ConsumerGroup]) -> None:
    apply_record(groups, said("a"), LIVE)
    with pytest.raises(AssertionError, match="g ends with 1 members"):
        apply_record(groups, ConsumerGroupForgotten("g"), LIVE)
    apply_record(groups, ConsumerGroupForgotten("g"), LOADING)
    assert groups == {}
