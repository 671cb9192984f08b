"""Test that a task is withheld from everybody but its owner, and that withheld tasks arrive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignors.task_ownership import TaskClaim, find_task_owners, withhold_owned_tasks

TASKS = [f"0_{number}" for number in range(6)]
MEMBERS = "abcd"
CLAIMS = st.fixed_dictionaries(
    {
        member: st.builds(
            TaskClaim,
            st.sets(st.sampled_from(TASKS)),
            st.integers(-1, 4),
        )
        for member in MEMBERS
    }
)
TARGETS = st.dictionaries(st.sampled_from(TASKS), st.sampled_from(MEMBERS))


def targets_of(owner_by_task: dict[str, str]) -> dict[str, list[str]]:
    return {m: [task for task, owner in owner_by_task.items() if owner == m] for m in MEMBERS}


def test_the_owner_of_a_task_is_who_claims_it_with_the_highest_generation() -> None:
    claims = {"a": TaskClaim(["0_0", "0_1"], 3), "b": TaskClaim(["0_0"], 5)}
    assert find_task_owners(claims) == {"0_0": "b", "0_1": "a"}


def test_a_task_that_two_claim_with_one_generation_is_nobodys() -> None:
    claims = {m: TaskClaim(["0_0"], 5) for m in "abc"} | {"d": TaskClaim(["0_0"], 4)}
    assert find_task_owners(claims) == {}


def test_a_member_without_an_assignment_owns_none() -> None:
    assert find_task_owners({"a": TaskClaim(["0_1"], -1)}) == {}


def test_a_task_that_moves_is_revoked_in_one_round_and_assigned_in_the_next() -> None:
    target = {"a": ["0_0"], "b": ["0_1"]}
    first = withhold_owned_tasks(target, {"0_0": "a", "0_1": "a"})
    assert first.tasks == {"a": ["0_0"], "b": []}
    assert first.revoked == {"a": ["0_1"], "b": []}
    second = withhold_owned_tasks(target, {"0_0": "a"})
    assert second.tasks == target
    assert second.revoked == {"a": [], "b": []}


def test_what_an_owner_has_and_nobody_is_to_have_is_revoked() -> None:
    withheld = withhold_owned_tasks({"a": [], "b": []}, {"0_9": "a"})
    assert withheld.revoked == {"a": ["0_9"], "b": []}


@given(CLAIMS)
def test_the_order_of_the_claims_does_not_matter(claims: dict[str, TaskClaim]) -> None:
    assert find_task_owners(dict(reversed(claims.items()))) == find_task_owners(claims)


@given(CLAIMS, TARGETS)
def test_each_task_is_in_one_list_and_that_of_its_owner_if_it_has_one(
    claims: dict[str, TaskClaim], target: dict[str, str]
) -> None:
    owners = find_task_owners(claims)
    withheld = withhold_owned_tasks(targets_of(target), owners)
    found = [
        (task, member) for lists in withheld for member, tasks in lists.items() for task in tasks
    ]
    assert len({task for task, _ in found}) == len(found)
    assert dict(found) == target | owners


@given(CLAIMS, TARGETS)
def test_after_one_more_round_every_task_is_where_it_is_to_be(
    claims: dict[str, TaskClaim], target: dict[str, str]
) -> None:
    first = withhold_owned_tasks(targets_of(target), find_task_owners(claims))
    joined_again = {member: TaskClaim(tasks, 9) for member, tasks in first.tasks.items()}
    second = withhold_owned_tasks(targets_of(target), find_task_owners(joined_again))
    assert {m: set(tasks) for m, tasks in second.tasks.items()} == {
        m: set(tasks) for m, tasks in targets_of(target).items()
    }
    assert not any(second.revoked.values())
