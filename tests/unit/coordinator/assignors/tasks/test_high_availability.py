"""Test what holds of every assignment of active, standby and warm-up tasks, in any state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignors.tasks import (
    AssignmentConfigs,
    AssignmentInput,
    ClientState,
    assign_tasks_and_replicas,
)
from tests.unit.coordinator.assignors.tasks.groups import (
    clients_by_task,
    count_by_member,
    eligible_clients,
    find_round_limit,
    lag_of,
    settle,
    some_configs,
    some_groups,
)

Value = TypeVar("Value")
GROUPS = st.one_of(some_groups(), some_groups(is_mixed=True))


@given(GROUPS, some_configs())
def test_every_task_that_a_member_may_run_has_one_active_there(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    assigned = assign_tasks_and_replicas(state, configs)
    assert assigned.members.keys() == {m for c in state.clients.values() for m in c.members}
    tasks = {*state.stateful_tasks, *state.stateless_tasks}
    active = [(task, m) for m, mine in assigned.members.items() for task in mine.active]
    assert sorted(task for task, _ in active) == sorted(
        task for task in tasks if eligible_clients(state, task)
    )
    if state.eligible_members is not None:
        for member, mine in assigned.members.items():
            for task in (*mine.active, *mine.standby, *mine.warmup):
                assert member in state.eligible_members[task]


@given(GROUPS, some_configs())
def test_an_active_stateful_task_is_on_a_client_that_is_caught_up_if_there_is_one(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    assigned = assign_tasks_and_replicas(state, configs)
    active = clients_by_task(state, assigned, "active")
    limit = configs.acceptable_recovery_lag
    for task in set(state.stateful_tasks) & active.keys():
        least = min(lag_of(state, task, each) for each in eligible_clients(state, task))
        assert least > limit or lag_of(state, task, active[task][0]) <= limit


@given(GROUPS, some_configs())
def test_no_client_has_two_copies_of_a_task(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    assigned = assign_tasks_and_replicas(state, configs)
    by_kind = [clients_by_task(state, assigned, kind) for kind in ("active", "standby", "warmup")]
    for task in by_kind[0]:
        copies = [client for kind in by_kind for client in kind.get(task, [])]
        assert len(copies) == len(set(copies))
    assert not set(state.stateless_tasks) & (by_kind[1].keys() | by_kind[2].keys())


@given(GROUPS, some_configs())
def test_there_are_as_many_standbys_as_wanted_or_as_there_are_other_clients(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    standbys = clients_by_task(state, assign_tasks_and_replicas(state, configs), "standby")
    for task in state.stateful_tasks:
        most = max(0, len(eligible_clients(state, task)) - 1)
        assert len(standbys.get(task, [])) == min(configs.num_standby_replicas, most)


@given(GROUPS, some_configs())
def test_warm_ups_are_bounded_and_only_where_a_task_is_not_caught_up(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    assigned = assign_tasks_and_replicas(state, configs)
    warmups = clients_by_task(state, assigned, "warmup")
    assert sum(map(len, warmups.values())) <= configs.max_warmup_replicas
    assert assigned.is_probing_needed or not warmups
    for task, clients in warmups.items():
        for client in clients:
            assert lag_of(state, task, client) > configs.acceptable_recovery_lag


@given(GROUPS, some_configs())
def test_a_group_comes_to_rest_without_warm_ups(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    _, assigned, rounds = settle(state, configs)
    assert rounds <= find_round_limit(state, configs)
    assert not clients_by_task(state, assigned, "warmup")
    assert not assigned.is_probing_needed


@given(some_groups(), some_configs())
def test_at_rest_members_differ_by_one_active_stateful_task_and_one_active_task(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    state, assigned, _ = settle(state, configs)
    for tasks in ({*state.stateful_tasks}, {*state.stateful_tasks, *state.stateless_tasks}):
        counts = count_by_member(assigned, tasks)
        assert max(counts) - min(counts) <= 1


@given(some_groups(), some_configs())
def test_members_are_balanced_at_once_where_all_are_caught_up(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    caught_up = {name: client._replace(lags={}) for name, client in state.clients.items()}
    state = state._replace(
        clients=caught_up, changelog_sizes=dict.fromkeys(state.stateful_tasks, 0)
    )
    assigned = assign_tasks_and_replicas(state, configs)
    assert not assigned.is_probing_needed
    for tasks in ({*state.stateful_tasks}, {*state.stateful_tasks, *state.stateless_tasks}):
        counts = count_by_member(assigned, tasks)
        assert max(counts) - min(counts) <= 1


@given(some_groups(), some_configs())
def test_active_tasks_are_as_balanced_as_what_stays_with_caught_up_clients_allows(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    """Check that a member with stateless tasks has at most one active task more than another."""
    assigned = assign_tasks_and_replicas(state, configs)
    counts = {member: len(mine.active) for member, mine in assigned.members.items()}
    for member, mine in assigned.members.items():
        if set(mine.active) & set(state.stateless_tasks):
            assert counts[member] - min(counts.values()) <= 1


@given(some_groups(is_mixed=True), some_configs())
def test_at_rest_no_move_to_an_eligible_member_balances_better(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    state, assigned, _ = settle(state, configs)
    stateful = set(state.stateful_tasks)
    counts = dict(zip(assigned.members, count_by_member(assigned, stateful), strict=True))
    assert state.eligible_members is not None
    for member, mine in assigned.members.items():
        for task in stateful & set(mine.active):
            able = set(state.eligible_members[task]) & counts.keys()
            assert counts[member] - min(counts[each] for each in able) <= 1


@given(GROUPS, some_configs())
def test_the_order_of_the_input_does_not_matter(
    state: AssignmentInput, configs: AssignmentConfigs
) -> None:
    turned = AssignmentInput(
        list(state.stateful_tasks)[::-1],
        list(state.stateless_tasks)[::-1],
        {
            name: ClientState(list(client.members)[::-1], turn(client.lags), turn(client.tags))
            for name, client in turn(state.clients).items()
        },
        turn(state.owners),
        {task: sorted(members) for task, members in turn(state.standby_holders).items()},
        turn(state.eligible_members) if state.eligible_members is not None else None,
        turn(state.changelog_sizes),
    )
    tags = list(configs.rack_aware_assignment_tags)[::-1]
    assert assign_tasks_and_replicas(
        turned, configs._replace(rack_aware_assignment_tags=tags)
    ) == assign_tasks_and_replicas(state, configs)


def turn(mapping: Mapping[str, Value]) -> dict[str, Value]:
    return dict(reversed(list(mapping.items())))


def test_no_members_is_an_error() -> None:
    with pytest.raises(ValueError, match="no members"):
        assign_tasks_and_replicas(
            AssignmentInput(["0_0"], [], {"c": ClientState([])}), AssignmentConfigs()
        )


def test_no_warm_ups_at_all_is_an_error() -> None:
    state = AssignmentInput(["0_0"], [], {"c": ClientState(["m"])})
    with pytest.raises(ValueError, match="at least 1"):
        assign_tasks_and_replicas(state, AssignmentConfigs(max_warmup_replicas=0))
