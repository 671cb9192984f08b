"""Test that task assignment gives out every task once, balanced within one, and sticky."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignors.tasks import assign_tasks

TASKS = st.sets(st.integers(0, 30).map(lambda n: f"0_{n}"))
MEMBERS = st.dictionaries(
    st.sampled_from("abcdef"), st.sets(st.integers(0, 40).map(lambda n: f"0_{n}")), min_size=1
)


@given(TASKS, MEMBERS)
def test_every_task_has_one_member_and_no_member_has_two_more_than_another(
    tasks: set[str], previous: dict[str, set[str]]
) -> None:
    assigned = assign_tasks(tasks, previous)
    assert assigned.keys() == previous.keys()
    assert sorted(task for mine in assigned.values() for task in mine) == sorted(tasks)
    sizes = [len(mine) for mine in assigned.values()]
    assert max(sizes) - min(sizes) <= 1


@given(TASKS, MEMBERS)
def test_assigning_again_moves_nothing(tasks: set[str], previous: dict[str, set[str]]) -> None:
    assigned = assign_tasks(tasks, previous)
    assert assign_tasks(tasks, assigned) == assigned


@given(TASKS, MEMBERS)
def test_the_order_of_the_arguments_does_not_matter(
    tasks: set[str], previous: dict[str, set[str]]
) -> None:
    backwards = dict(reversed(previous.items()))
    assert assign_tasks(sorted(tasks, reverse=True), backwards) == assign_tasks(tasks, previous)


@given(TASKS, st.dictionaries(st.integers(0, 30).map(lambda n: f"0_{n}"), st.sampled_from("abc")))
def test_a_member_keeps_as_many_of_its_tasks_as_balance_allows(
    tasks: set[str], owner_of: dict[str, str]
) -> None:
    previous = {m: {task for task, owner in owner_of.items() if owner == m} for m in "abcd"}
    assigned = assign_tasks(tasks, previous)
    for member, had in previous.items():
        kept = had & set(assigned[member])
        assert len(kept) >= min(len(had & tasks), len(tasks) // len(previous))


def test_a_new_member_takes_no_more_than_its_share() -> None:
    tasks = ["0_0", "0_1", "1_0", "1_1"]
    assigned = assign_tasks(tasks, {"old": tasks, "new": []})
    assert assigned == {"old": ["0_0", "1_0"], "new": ["0_1", "1_1"]}


@pytest.mark.parametrize("previous", [{"a": [], "b": []}, {"a": ["0_0", "1_0"], "b": []}])
def test_each_member_gets_its_share_of_every_sub_topology(previous: dict[str, list[str]]) -> None:
    tasks = [f"{subtopology}_{partition}" for subtopology in (0, 1) for partition in range(4)]
    for mine in assign_tasks(tasks, previous).values():
        assert [task[0] for task in mine] == ["0", "0", "1", "1"]


ABLE = st.dictionaries(
    st.integers(0, 30).map(lambda n: f"0_{n}"), st.sets(st.sampled_from("abcdef"), min_size=1)
)


@given(ABLE, MEMBERS)
def test_where_not_all_may_have_all_every_task_goes_to_a_member_that_may_have_it(
    able: dict[str, set[str]], previous: dict[str, set[str]]
) -> None:
    able = {task: members & previous.keys() for task, members in able.items()}
    assigned = assign_tasks(able, previous, able)
    assert assigned.keys() == previous.keys()
    owners = {task: member for member, mine in assigned.items() for task in mine}
    assert sum(map(len, assigned.values())) == len(owners)
    assert owners.keys() == {task for task, members in able.items() if members}
    for task, owner in owners.items():
        assert owner in able[task]
        least = min(len(assigned[member]) for member in able[task])
        assert len(assigned[owner]) - least <= 1  # no move of one task would balance better
    assert assign_tasks(able, assigned, able) == assigned
    backwards = {m: list(previous[m]) for m in reversed(previous)}
    assert assign_tasks(list(reversed(able)), backwards, able) == assigned


def test_no_members_is_an_error() -> None:
    with pytest.raises(ValueError, match="no members"):
        assign_tasks(["0_0"], {})
