"""Test placements of least cost against every placement that there is."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignors.tasks.cheapest_placement import CheapestPlacement, Place


@st.composite
def some_problems(draw: st.DrawFn) -> tuple[list[str], list[list[int]], dict[Place, int]]:
    """Draw tasks of up to two groups, costs by task and client, and limits by place."""
    clients = draw(st.integers(1, 3))
    groups = draw(st.lists(st.integers(0, 1), min_size=1, max_size=6))
    tasks = [f"{group}_{number}" for number, group in enumerate(groups)]
    costs = [draw(st.lists(st.integers(0, 9), min_size=clients, max_size=clients)) for _ in tasks]
    limits = {
        Place(client, str(group)): draw(st.integers(0, len(tasks)))
        for client in range(clients)
        for group in range(2)
        if draw(st.booleans())
    }
    return tasks, costs, limits


def sum_costs(placed: dict[str, int], tasks: list[str], costs: list[list[int]]) -> int:
    return sum(costs[tasks.index(task)][client] for task, client in placed.items())


def is_within(placed: dict[str, int], counts: dict[int, int], limits: dict[Place, int]) -> bool:
    clients = list(placed.values())
    places = [Place(client, task[0]) for task, client in placed.items()]
    return all(clients.count(client) == count for client, count in counts.items()) and all(
        places.count(place) <= limit for place, limit in limits.items()
    )


@given(some_problems(), st.data())
def test_no_placement_within_the_limits_costs_less(
    problem: tuple[list[str], list[list[int]], dict[Place, int]], data: st.DataObject
) -> None:
    tasks, costs, limits = problem
    clients = range(len(costs[0]))
    of_tasks = [data.draw(st.sampled_from(clients)) for _ in tasks]
    counts = {client: of_tasks.count(client) for client in clients}
    placed = [dict(zip(tasks, each, strict=True)) for each in product(clients, repeat=len(tasks))]
    possible = [sum_costs(each, tasks, costs) for each in placed if is_within(each, counts, limits)]
    solver = CheapestPlacement(
        lambda task, client: costs[tasks.index(task)][client],
        counts,
        lambda task: task[0],
        limits,
    )
    if not possible:
        with pytest.raises(ValueError, match="leave no room for task"):
            solver.place_tasks(tasks)
        return
    found = solver.place_tasks(tasks)
    assert is_within(found, counts, limits)
    assert sum_costs(found, tasks, costs) == min(possible)
