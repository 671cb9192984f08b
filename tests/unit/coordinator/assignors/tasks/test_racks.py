"""Test placement by racks (KIP-925): where tasks go, when it can't be, and that groups rest."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coordinator.assignors.tasks import (
    AssignmentConfigs,
    AssignmentInput,
    ClientState,
    TaskRacks,
    assign_tasks_and_replicas,
)
from coordinator.assignors.tasks.racks import find_rack_obstacle
from tests.unit.coordinator.assignors.tasks.groups import (
    clients_by_task,
    settle,
    some_configs,
    some_groups,
)

MIN_TRAFFIC = AssignmentConfigs(rack_aware_assignment_strategy="min_traffic")
RACKS = ("r1", "r2", "r3")


def build_group(tasks: dict[str, str], *, is_stateful: bool = True) -> AssignmentInput:
    """Build a group of two clients in two racks, with tasks by the rack of all their partitions."""
    racks = {task: TaskRacks([frozenset([r])], [frozenset([r])]) for task, r in tasks.items()}
    return AssignmentInput(
        list(tasks) if is_stateful else [],
        [] if is_stateful else list(tasks),
        {f"c{rack}": ClientState([f"c{rack}-m"], racks=[rack]) for rack in RACKS[:2]},
        changelog_sizes=dict.fromkeys(tasks, 0),
        task_racks=racks,
    )


def active_clients(state: AssignmentInput, configs: AssignmentConfigs) -> dict[str, str]:
    active = clients_by_task(state, assign_tasks_and_replicas(state, configs), "active")
    return {task: client for task, (client,) in active.items()}


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
@pytest.mark.parametrize("is_stateful", [True, False])
def test_tasks_run_in_the_racks_of_what_they_read(strategy: str, is_stateful: bool) -> None:
    tasks = {"0_0": "r2", "0_1": "r2", "0_2": "r1", "0_3": "r1"}
    state = build_group(tasks, is_stateful=is_stateful)
    configs = AssignmentConfigs(rack_aware_assignment_strategy=strategy)
    assert active_clients(state, configs) == {task: f"c{rack}" for task, rack in tasks.items()}
    plain = active_clients(state, AssignmentConfigs())
    assert plain != {task: f"c{rack}" for task, rack in tasks.items()}


def test_the_sub_topologies_stay_spread_if_the_strategy_says_so() -> None:
    """Two sub-topologies are each in a rack of their own: one strategy splits both."""
    tasks = {f"{sub}_{p}": RACKS[sub] for sub in range(2) for p in range(2)}
    state = build_group(tasks)
    by_traffic = active_clients(state, MIN_TRAFFIC)
    assert by_traffic == {task: f"c{rack}" for task, rack in tasks.items()}
    balanced = active_clients(
        state, AssignmentConfigs(rack_aware_assignment_strategy="balance_subtopology")
    )
    assert set(Counter((task[0], client) for task, client in balanced.items()).values()) == {1}


def test_a_client_keeps_its_number_of_tasks_though_all_are_in_one_rack() -> None:
    state = build_group(dict.fromkeys(("0_0", "0_1", "0_2", "0_3"), "r1"))
    assert Counter(active_clients(state, MIN_TRAFFIC).values()) == {"cr1": 2, "cr2": 2}


def test_a_higher_cost_of_moves_than_of_traffic_keeps_tasks_where_they_are() -> None:
    state = build_group({"0_0": "r2", "0_1": "r1"})
    state = state._replace(owners={"0_0": "cr1-m", "0_1": "cr2-m"})
    configs = MIN_TRAFFIC._replace(
        rack_aware_assignment_traffic_cost=1, rack_aware_assignment_non_overlap_cost=10
    )
    assert active_clients(state, configs) == {"0_0": "cr1", "0_1": "cr2"}
    assert active_clients(state, MIN_TRAFFIC) == {"0_0": "cr2", "0_1": "cr1"}


@pytest.mark.parametrize(
    ("changes", "standbys", "reason"),
    [
        ({}, 1, ""),
        ({"racks": ()}, 0, "client 'cr1' is not in one rack, but none: set client_rack"),
        ({"racks": ("",)}, 0, "client 'cr1' is not in one rack, but none"),
        ({"racks": ("a", "")}, 0, "client 'cr1' is not in one rack, but a, none"),
        ({"racks": ("a", "b")}, 0, "client 'cr1' is not in one rack, but a, b"),
        ({"sources": [frozenset()]}, 0, "don't tell the racks of what task 0_0 reads"),
        ({"sources": []}, 0, "don't tell the racks of what task 0_0 reads"),
        ({"changelogs": [frozenset()]}, 0, ""),
        ({"changelogs": [frozenset()]}, 1, "racks of the changelogs of task 0_0"),
        ({"eligible": {"0_0": ["cr1-m"]}}, 0, "several versions of the topology"),
    ],
)
def test_without_all_racks_assignment_does_not_look_at_them(
    changes: dict[str, Any], standbys: int, reason: str
) -> None:
    state = build_group({"0_0": "r2"})
    if "racks" in changes:
        first = state.clients["cr1"]._replace(racks=changes["racks"])
        state = state._replace(clients={**state.clients, "cr1": first})
    racks = {name: value for name, value in changes.items() if name in TaskRacks._fields}
    state = state._replace(
        task_racks={"0_0": state.task_racks["0_0"]._replace(**racks)},
        eligible_members=changes.get("eligible"),
    )
    configs = MIN_TRAFFIC._replace(num_standby_replicas=standbys)
    found = find_rack_obstacle(state, configs)
    assert reason in found
    assert bool(found) == bool(reason)
    if reason:
        assert assign_tasks_and_replicas(state, configs) == assign_tasks_and_replicas(
            state, configs._replace(rack_aware_assignment_strategy="none")
        )


@given(
    some_groups(),
    some_configs(),
    st.sampled_from(["min_traffic", "balance_subtopology"]),
    st.data(),
)
def test_groups_come_to_rest_with_balanced_threads(
    state: AssignmentInput, configs: AssignmentConfigs, strategy: str, data: st.DataObject
) -> None:
    tasks = [*state.stateful_tasks, *state.stateless_tasks]
    assume(tasks)
    some_racks = st.sets(st.sampled_from(RACKS), min_size=1).map(frozenset)
    clients = {
        name: client._replace(racks=[data.draw(st.sampled_from(RACKS))])
        for name, client in state.clients.items()
    }
    state = state._replace(
        clients=clients,
        task_racks={
            task: TaskRacks([data.draw(some_racks)], [data.draw(some_racks)]) for task in tasks
        },
    )
    by_racks = configs._replace(rack_aware_assignment_strategy=strategy)
    assert find_rack_obstacle(state, by_racks) == ""
    settled, assigned, _ = settle(state, by_racks)
    active = clients_by_task(settled, assigned, "active")
    assert sorted(active) == sorted(tasks)
    counts = Counter(client for found in active.values() for client in found)
    threads = {name: len(client.members) for name, client in clients.items()}
    fullest = max(-(-counts[name] // count) for name, count in threads.items())
    assert fullest - min(counts[name] // count for name, count in threads.items()) <= 1
