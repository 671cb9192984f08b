"""Test what moves when clients join, leave and restart, and how standbys are spread by tags."""

from __future__ import annotations

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
    TAGS,
    client_by_member,
    clients_by_task,
    count_by_member,
    lag_of,
    settle,
    some_groups,
    some_settled_groups,
)

SETTLED = some_settled_groups()
SETTLED_OF_TWO = some_settled_groups(client_count_min=2)
Settled = tuple[AssignmentInput, AssignmentConfigs]


def find_active(state: AssignmentInput) -> dict[str, str]:
    """Return the client that runs each task now."""
    client_of = client_by_member(state)
    return {task: client_of[member] for task, member in state.owners.items()}


def remove_client(state: AssignmentInput, client: str) -> AssignmentInput:
    """Return the group after a client has left, as its leader then sees it."""
    gone = state.clients[client].members
    return state._replace(
        clients={name: each for name, each in state.clients.items() if name != client},
        owners={t: m for t, m in state.owners.items() if m not in gone},
        standby_holders={t: set(held) - set(gone) for t, held in state.standby_holders.items()},
    )


@given(SETTLED, st.integers(1, 3), st.sampled_from([0, 10**9]))
def test_a_client_that_joins_moves_its_share_and_nothing_else(
    group: Settled, thread_count: int, changelog_size: int
) -> None:
    state, configs = group
    before = find_active(state)
    joiner = ClientState([f"new-m{number}" for number in range(thread_count)])
    state = state._replace(
        clients={**state.clients, "a-new": joiner},
        changelog_sizes=dict.fromkeys(state.stateful_tasks, changelog_size),
    )
    state, assigned, _ = settle(state, configs)
    after = find_active(state)
    moved = {task for task in before if after[task] != before[task]}
    stateful = set(state.stateful_tasks)
    others = {task for task in moved if after[task] != "a-new"}
    assert not others & stateful
    # A stateful task that moves may have a stateless one make room for it.
    assert len(others) <= len(moved & stateful)
    for tasks in ({*state.stateful_tasks}, {*state.stateless_tasks, *state.stateful_tasks}):
        share = -(-len(tasks) // len(assigned.members)) * thread_count
        assert sum(after[task] == "a-new" for task in tasks) <= share


def leave_state_to(state: AssignmentInput, heir: str, tasks: set[str]) -> AssignmentInput:
    """Return the group with the state of some tasks on one client only, which is caught up."""
    stateful = tasks & set(state.stateful_tasks)
    clients = {}
    for name, client in state.clients.items():
        lags = {task: lag for task, lag in client.lags.items() if task not in stateful}
        lags |= dict.fromkeys(stateful if name == heir else (), 0)
        clients[name] = client._replace(lags=lags)
    return state._replace(clients=clients)


@given(SETTLED_OF_TWO, st.data())
def test_a_client_that_leaves_moves_its_own_tasks_only(group: Settled, data: st.DataObject) -> None:
    state, configs = group
    before = find_active(state)
    gone = data.draw(st.sampled_from(sorted(state.clients)))
    state = remove_client(state, gone)
    if heir := data.draw(st.sampled_from([None, *sorted(state.clients)])):
        state = leave_state_to(state, heir, {t for t, name in before.items() if name == gone})
    assigned = assign_tasks_and_replicas(state, configs)
    first = {t: each[0] for t, each in clients_by_task(state, assigned, "active").items()}
    stateful = set(state.stateful_tasks)
    own = {task for task, client in before.items() if client == gone}
    assert not stateful & {task for task in before.keys() - own if first[task] != before[task]}
    if configs.num_standby_replicas == 0:
        assert clients_by_task(state, assigned, "warmup").keys() <= own
    after = find_active(settle(state, configs)[0])
    others = {task for task in before.keys() - own if after[task] != before[task]}
    # What is handed on later: one of the heir's own may go in place of one of the client's.
    assert len(stateful & others) <= len(stateful & own)
    assert len(others) <= 2 * len(stateful & own)


@given(SETTLED, st.data(), st.booleans())
def test_a_client_that_restarts_moves_nothing(
    group: Settled, data: st.DataObject, has_new_names: bool
) -> None:
    state, configs = group
    name = data.draw(st.sampled_from(sorted(state.clients)))
    client = state.clients[name]
    before = (
        find_active(state),
        clients_by_task(state, assign_tasks_and_replicas(state, configs), "standby"),
    )
    restarted = remove_client(state, name)
    if has_new_names:
        client = client._replace(members=[f"{member}-again" for member in client.members])
    restarted = restarted._replace(clients={**restarted.clients, name: client})
    assigned = assign_tasks_and_replicas(restarted, configs)
    assert not assigned.is_probing_needed
    active = clients_by_task(restarted, assigned, "active")
    doubtful = {t for t in state.stateful_tasks if find_lookalikes(state, configs, t) - {name}}
    for task in set(state.stateful_tasks) - doubtful:
        assert active[task] == [before[0][task]]
    if not doubtful and not configs.rack_aware_assignment_tags:
        standbys = clients_by_task(restarted, assigned, "standby")
        assert {t: set(each) for t, each in standbys.items()} == {
            t: set(each) for t, each in before[1].items()
        }


def find_lookalikes(state: AssignmentInput, configs: AssignmentConfigs, task: str) -> set[str]:
    """Return the clients that may have run a task before a restart, as far as a leader can tell.

    They are caught up, have a member without tasks, and no standby of the task.
    """
    busy = set(state.owners.values()).union(*state.standby_holders.values())
    return {
        name
        for name, client in state.clients.items()
        if not busy.issuperset(client.members)
        and lag_of(state, task, name) <= configs.acceptable_recovery_lag
        and not set(client.members) & set(state.standby_holders.get(task, ()))
    }


@given(SETTLED, st.data())
def test_a_member_that_restarts_gets_its_tasks_back(group: Settled, data: st.DataObject) -> None:
    state, configs = group
    member = data.draw(st.sampled_from(sorted(client_by_member(state))))
    restarted = state._replace(
        owners={t: m for t, m in state.owners.items() if m != member},
        standby_holders={t: set(held) - {member} for t, held in state.standby_holders.items()},
    )
    again = assign_tasks_and_replicas(restarted, configs)
    active = {t: m for m, mine in again.members.items() for t in mine.active}
    client_of = client_by_member(state)
    others_busy = set(state.owners.values()) >= client_of.keys()
    for task in state.stateful_tasks:
        owner = state.owners[task]
        if find_lookalikes(state, configs, task) - {client_of[member]}:
            continue
        assert client_of[active[task]] == client_of[owner]
        # A member that had nothing looks like one that has just restarted.
        assert active[task] == owner or not others_busy


@given(some_groups(client_count_min=2), st.integers(1, 3))
def test_a_standbys_tags_differ_from_the_active_tasks_as_far_as_they_can(
    state: AssignmentInput, warmups: int
) -> None:
    configs = AssignmentConfigs(1, warmups, 100, TAGS)
    state, assigned, _ = settle(state, configs)
    active = find_active(state)
    standbys = clients_by_task(state, assigned, "standby")
    for task in state.stateful_tasks:
        tags = state.clients[active[task]].tags
        differing = {
            name: sum(client.tags[tag] != tags[tag] for tag in TAGS)
            for name, client in state.clients.items()
            if name != active[task]
        }
        assert differing[standbys[task][0]] == max(differing.values())


def test_two_standbys_are_in_two_other_racks() -> None:
    clients = {
        f"c{number}": ClientState([f"m{number}"], {}, {"zone": f"z{number // 2}"})
        for number in range(6)
    }
    tasks = [f"0_{partition}" for partition in range(12)]
    configs = AssignmentConfigs(2, rack_aware_assignment_tags=["zone"])
    state, assigned, _ = settle(AssignmentInput(tasks, [], clients), configs)
    active = find_active(state)
    for task, standbys in clients_by_task(state, assigned, "standby").items():
        zones = {clients[each].tags["zone"] for each in (active[task], *standbys)}
        assert zones == {"z0", "z1", "z2"}
    copies = [len(mine.active) + len(mine.standby) for mine in assigned.members.values()]
    assert copies == [6] * 6


def test_a_standby_takes_over_and_others_are_not_disturbed() -> None:
    tasks = [f"0_{partition}" for partition in range(6)]
    clients = {name: ClientState([name]) for name in "abc"}
    configs = AssignmentConfigs(1)
    state, _, _ = settle(AssignmentInput(tasks, [], clients), configs)
    held = {task: state.standby_holders[task] for task, m in state.owners.items() if m == "a"}
    assigned = assign_tasks_and_replicas(remove_client(state, "a"), configs)
    for task, holders in held.items():
        assert [m for m, mine in assigned.members.items() if task in mine.active] == list(holders)


@pytest.mark.parametrize("owner", [None, "a"])
def test_each_member_gets_its_share_of_every_sub_topology(owner: str | None) -> None:
    tasks = [f"{subtopology}_{partition}" for subtopology in (0, 1) for partition in range(4)]
    clients = {name: ClientState([name]) for name in "ab"}
    owners = dict.fromkeys(tasks, owner) if owner else {}
    for stateful, stateless in ((tasks, []), ([], tasks), (tasks[:4], tasks[4:])):
        state = AssignmentInput(stateful, stateless, clients, owners)
        _, assigned, _ = settle(state, AssignmentConfigs())
        for mine in assigned.members.values():
            assert sorted(task[0] for task in mine.active) == ["0", "0", "1", "1"]


def test_a_task_moves_only_after_its_warm_up_and_two_at_a_time() -> None:
    tasks = [f"0_{partition}" for partition in range(8)]
    old = ClientState(["a"], dict.fromkeys(tasks, 0))
    state = AssignmentInput(
        tasks, [], {"a": old, "b": ClientState(["b"])}, dict.fromkeys(tasks, "a")
    )
    first = assign_tasks_and_replicas(state, AssignmentConfigs())
    assert len(first.members["a"].active) == 8
    assert len(first.members["b"].warmup) == 2
    assert first.is_probing_needed
    _, settled, rounds = settle(state, AssignmentConfigs())
    assert count_by_member(settled, set(tasks)) == [4, 4]
    assert rounds == 4


def test_an_idle_thread_beside_a_standby_does_not_look_like_a_restart() -> None:
    state = AssignmentInput(
        ["0_0"],
        [],
        {"a": ClientState(["a0", "a1"], {"0_0": 0}), "b": ClientState(["b0"], {"0_0": 0})},
        {},
        {"0_0": ["a0"]},
    )
    assigned = assign_tasks_and_replicas(state, AssignmentConfigs(1))
    assert assigned.members["b0"].active == ("0_0",)


def test_a_standby_is_not_where_the_active_task_goes() -> None:
    tasks = [f"0_{partition}" for partition in range(3)]
    clients = {name: ClientState([name]) for name in "bc"}
    clients["a"] = ClientState(["a"], dict.fromkeys(tasks, 0))
    state = AssignmentInput(tasks, [], clients, dict.fromkeys(tasks, "a"))
    assigned = assign_tasks_and_replicas(state, AssignmentConfigs(1))
    assert [len(assigned.members[name].warmup) for name in "abc"] == [0, 1, 1]


def test_clients_that_join_get_tasks_of_every_subtopology_where_all_lags_are_acceptable() -> None:
    heavy, light = ([f"{number}_{p}" for p in range(6)] for number in (0, 1))
    state = AssignmentInput(
        [*heavy, *light],
        [],
        {
            "a": ClientState(["a-m"], dict.fromkeys([*heavy, *light], 0)),
            "b": ClientState(["b-m"]),
            "c": ClientState(["c-m"]),
        },
        owners=dict.fromkeys([*heavy, *light], "a-m"),
        changelog_sizes={**dict.fromkeys(heavy, 800), **dict.fromkeys(light, 200)},
    )
    assigned = assign_tasks_and_replicas(state, AssignmentConfigs()).members
    for each in assigned.values():
        assert [len({*each.active} & {*tasks}) for tasks in (heavy, light)] == [2, 2]
