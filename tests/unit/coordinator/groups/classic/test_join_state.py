"""A classic group is what its record says, and keeps what no record says beside that."""

from __future__ import annotations

from dataclasses import replace

from coordinator.groups.classic.state import (
    ClassicGroup,
    ClassicGroupMember,
    ClassicGroupPhase,
    GroupForgotten,
    apply_record,
    keep_join_state,
)
from tests.unit.coordinator.groups.classic.members import FakeMember, stable_group
from tests.unit.coordinator.world import World

PROTOCOLS = (("sticky", b"as sticky"), ("range", b"as range"))


def changed_group(phase: ClassicGroupPhase) -> ClassicGroup:
    """Return a group in which nothing has its default."""
    member = ClassicGroupMember(
        "m", "instance", "client", "/host", 60_000, 10_000, PROTOCOLS, assignment=b"part"
    )
    return ClassicGroup(
        group_id="counts",
        phase=phase,
        previous_phase=phase,
        phase_started_at_ms=5,
        generation=7,
        protocol_type="consumer",
        protocol="range",
        leader="m",
        members={"m": member},
        joining={"joins"},
        syncing={"syncs"},
        pending_join={"is to join"},
        pending_sync={"is to sync"},
        new_member_added=True,
        rebalance_started_at_ms=3,
        initial_delay_ms=2,
        initial_remaining_ms=1,
    )


def test_a_saved_group_and_its_join_state_are_the_whole_group() -> None:
    changed = changed_group(ClassicGroupPhase.STABLE)
    groups: dict[str, ClassicGroup] = {}
    apply_record(groups, changed.to_record())
    assert groups["counts"].members["m"].protocols == (("range", b"as range"),)
    assert not groups["counts"].pending_join
    keep_join_state(groups, changed, is_saved=True)
    assert groups["counts"] == changed
    assert groups["counts"] is not changed
    apply_record(groups, GroupForgotten("counts"))
    assert not groups


def test_what_is_saved_is_taken_from_the_record_alone() -> None:
    changed = changed_group(ClassicGroupPhase.STABLE)
    groups: dict[str, ClassicGroup] = {}
    apply_record(groups, replace(changed.to_record(), generation=8, leader=None, members=()))
    group = groups["counts"]
    keep_join_state(groups, replace(changed, members={}), is_saved=True)
    assert groups["counts"] is group
    assert (group.generation, group.leader, group.members) == (8, None, {})


def test_a_rebalance_stands_before_what_is_saved() -> None:
    changed = changed_group(ClassicGroupPhase.PREPARING_REBALANCE)
    groups: dict[str, ClassicGroup] = {}
    apply_record(groups, ClassicGroup("counts").to_record())
    keep_join_state(groups, changed, is_saved=True)
    assert groups["counts"] == changed


def test_what_is_done_to_a_copy_is_not_done_to_the_group() -> None:
    group = changed_group(ClassicGroupPhase.STABLE)
    copy = group.copy_group()
    assert copy == group
    copy.members.clear()
    for member_ids in (copy.joining, copy.syncing, copy.pending_join, copy.pending_sync):
        member_ids.clear()
    assert group == changed_group(ClassicGroupPhase.STABLE)


def test_a_stable_group_is_derived_from_its_record_live_and_after_a_restart(world: World) -> None:
    a, b = (FakeMember(world, name, protocols=("range", "sticky")) for name in "ab")
    stable_group(world, a, b)
    live = derived_groups(world)
    world.restart()
    loaded = derived_groups(world)
    assert live["counts"].protocol == loaded["counts"].protocol == "range"
    offered = {member_id: m.protocols for member_id, m in live["counts"].members.items()}
    assert all(len(protocols) == 2 for protocols in offered.values())
    for group in loaded.values():
        group.copy_join_state_of(live[group.group_id])
    assert loaded == live


def derived_groups(world: World) -> dict[str, ClassicGroup]:
    return {name: group for s in world.groups.shards for name, group in s.state.classic.items()}
