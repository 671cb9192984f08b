"""Test that tasks are placed by the racks that brokers and members tell (KIP-925)."""

from __future__ import annotations

import logging

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from tests.unit.streams.runtime.assigning.test_group_assignment import TASKS, Group, active


def start_group(strategy: str = "min_traffic") -> Group:
    """Return a group of two members in two racks; the first two partitions are in the second."""
    group = Group(rack_aware_assignment_strategy=strategy)
    group.admin.racks = {
        Partition("x", number): frozenset(["r2" if number < 2 else "r1"])
        for number in range(len(TASKS))
    }
    group.join("a", rack="r1")
    group.join("b", rack="r2")
    for member in "ab":  # both have all state: tasks go where they are to run at once
        group.restore(member, *TASKS)
    return group


def test_tasks_are_in_the_racks_of_what_they_read(caplog: pytest.LogCaptureFixture) -> None:
    group = start_group()
    given = group.rebalance()
    assert {member: each.tasks for member, each in given.items()} == {
        "a": ("0_2", "0_3"),
        "b": ("0_0", "0_1"),
    }
    assert "without regard to racks" not in caplog.text


def test_nobody_is_asked_for_racks_without_the_strategy() -> None:
    group = start_group("none")
    assert active(group.rebalance()) == {"a": 2, "b": 2}
    assert group.script.filter_calls("admin.fetch_replica_racks") == []


@pytest.mark.parametrize(
    "error", [None, OutcomeUnknown("nobody answers")], ids=["no racks", "no answer"]
)
def test_unknown_racks_are_logged_and_tasks_are_assigned(
    caplog: pytest.LogCaptureFixture, error: Exception | None
) -> None:
    group = start_group()
    group.admin.racks.clear()
    if error is not None:
        group.script.fail("admin.fetch_replica_racks", error)
    with caplog.at_level(logging.WARNING):
        assert active(group.rebalance()) == {"a": 2, "b": 2}
    assert "without regard to racks: brokers don't tell the racks of what task 0_0" in caplog.text


def test_a_member_without_a_rack_is_named(caplog: pytest.LogCaptureFixture) -> None:
    group = start_group()
    group.join("b")
    with caplog.at_level(logging.WARNING):
        group.rebalance()
    assert "client 'b' is not in one rack, but none: set client_rack" in caplog.text
