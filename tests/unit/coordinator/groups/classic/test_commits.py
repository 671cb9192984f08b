"""Test that members of the generation commit offsets, or anyone while there are no members."""

from __future__ import annotations

import pytest

from coordinator.errors import Code
from coordinator.offsets.commit import CommittingMember
from tests.unit.coordinator.groups.classic.members import (
    FakeMember,
    phase,
    stable_group,
)
from tests.unit.coordinator.world import World, code_of


@pytest.mark.parametrize("transactional", [True, False])
def test_a_commit_needs_the_exact_generation(world: World, transactional: bool) -> None:
    a = FakeMember(world, "a")
    stable_group(world, a)

    def commit(generation: int, member_id: str) -> Code:
        committer = CommittingMember(generation=generation, member_id=member_id)
        if not transactional:
            return code_of(world.commit, 5, committer=committer)
        owner = world.init()
        world.add_group(owner)
        return code_of(world.stage, owner, 5, committer=committer)

    assert commit(a.generation, a.member_id) is Code.NONE
    assert commit(a.generation - 1, a.member_id) is Code.ILLEGAL_GENERATION
    assert commit(a.generation + 1, a.member_id) is Code.ILLEGAL_GENERATION
    assert commit(a.generation, "nobody") is Code.UNKNOWN_MEMBER_ID
    outsider = commit(-1, "")
    assert outsider is (Code.NONE if transactional else Code.UNKNOWN_MEMBER_ID)


def test_a_commit_to_a_group_that_is_not_there_needs_no_generation(world: World) -> None:
    assert code_of(world.commit, 5) is Code.NONE
    stranger = CommittingMember(generation=3, member_id="m")
    refused = code_of(world.commit, 5, group_id="none", committer=stranger)
    assert refused is Code.ILLEGAL_GENERATION


def test_no_commit_between_generations_except_in_a_transaction(world: World) -> None:
    a = FakeMember(world, "a")
    a.join()
    world.clock.advance(0)
    assert phase(world) == "CompletingRebalance"
    assert code_of(world.commit, 5, committer=a.committer) is Code.REBALANCE_IN_PROGRESS
    owner = world.init()
    world.add_group(owner)
    world.stage(owner, 5, committer=a.committer)
