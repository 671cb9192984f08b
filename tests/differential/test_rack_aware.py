"""Test placement by racks against Kafka Streams' own (KIP-925), on random groups.

Both placements of active tasks cost the same, with as many tasks for each client. Standby tasks are
exchanged between pairs of clients; equal exchanges may lead to different ends: sums are compared.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

import pytest

from coordinator.assignors.tasks import (
    AssignmentConfigs,
    AssignmentInput,
    ClientState,
    TaskRacks,
)
from coordinator.assignors.tasks.pools import Pools
from coordinator.assignors.tasks.racks import RackAwareOptimizer, RackCosts
from tests.differential.test_task_assignor import start_java

SOURCE = Path(__file__).with_name("RackOptimizer.java")
SEEDS = range(300)
RACKS = "abc"


class RackCase(NamedTuple):
    """Holds tasks with the racks of their partitions, clients in racks, and who has what."""

    strategy: str
    costs: RackCosts
    tasks: dict[str, TaskRacks]
    racks: list[str]
    active: dict[str, int]
    standby: dict[str, int]
    """The client of the one standby of each task; none of its active client."""


def draw_racks(rng: random.Random) -> frozenset[str]:
    return frozenset(rng.sample(RACKS, rng.randint(1, 2)))


def draw_case(rng: random.Random) -> RackCase:
    tasks = {
        f"{sub}_{partition}": TaskRacks(
            [draw_racks(rng) for _ in range(rng.randint(1, 2))], [draw_racks(rng)]
        )
        for sub in range(rng.randint(1, 3))
        for partition in range(rng.randint(1, 10))
    }
    racks = [rng.choice(RACKS) for _ in range(rng.randint(2, 6))]
    active = {task: rng.randrange(len(racks)) for task in tasks}
    others = {task: [each for each in range(len(racks)) if each != active[task]] for task in tasks}
    return RackCase(
        rng.choice(["min_traffic", "balance_subtopology"]),
        RackCosts(rng.choice([0, 1, 10]), rng.choice([0, 1, 10])),
        tasks,
        racks,
        active,
        {task: rng.choice(others[task]) for task in tasks},
    )


def optimize_by_ours(case: RackCase) -> tuple[dict[str, int], dict[str, int]]:
    """Return the clients of active and of standby tasks by the optimizer under test."""
    state = AssignmentInput(
        list(case.tasks),
        [],
        {f"c{n}": ClientState([f"m{n}"], racks=[rack]) for n, rack in enumerate(case.racks)},
        task_racks=case.tasks,
    )
    configs = AssignmentConfigs(
        rack_aware_assignment_strategy=case.strategy,
        rack_aware_assignment_traffic_cost=case.costs.traffic,
        rack_aware_assignment_non_overlap_cost=case.costs.non_overlap,
    )
    optimizer = RackAwareOptimizer(Pools(state, configs))
    active = optimizer.optimize_active(case.active, optimizer.stateful_costs)
    # As in Kafka Streams' function: a standby that is where the active task comes to is gone.
    standby = {task: client for task, client in case.standby.items() if active[task] != client}

    def list_movable(source: int, target: int) -> list[str]:
        return [t for t, client in standby.items() if client == source and active[t] != target]

    def move(task: str, source: int, target: int) -> None:
        assert standby[task] == source
        standby[task] = target

    optimizer.exchange_standbys(list_movable, move)
    return active, standby


class KafkasOptimizer:
    """Asks a JVM that runs Kafka Streams' optimizer."""

    def __init__(self, process: Popen[str]) -> None:
        self._process = process

    def optimize(self, case: RackCase) -> tuple[dict[str, int], dict[str, int]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(_describe(case)) + "\n")
        self._process.stdin.flush()
        clients = json.loads(self._process.stdout.readline())["clients"]
        active, standby = (
            {task: number for number, each in enumerate(clients) for task in each[kind]}
            for kind in ("active", "standby")
        )
        return active, standby


def _describe(case: RackCase) -> dict[str, Any]:
    return {
        "strategy": case.strategy,
        "traffic": case.costs.traffic,
        "overlap": case.costs.non_overlap,
        "tasks": {
            task: {
                "sources": [sorted(each) for each in racks.sources],
                "changelogs": [sorted(each) for each in racks.changelogs],
            }
            for task, racks in case.tasks.items()
        },
        "clients": [
            {
                "rack": rack,
                "active": [task for task, client in case.active.items() if client == number],
                "standby": [task for task, client in case.standby.items() if client == number],
            }
            for number, rack in enumerate(case.racks)
        ],
    }


def count_distant(case: RackCase, placed: dict[str, int], *, is_standby: bool = False) -> int:
    """Count the partitions without a replica in the rack of the client that reads them."""
    return sum(
        case.racks[client] not in racks
        for task, client in placed.items()
        for racks in (case.tasks[task].changelogs if is_standby else case.tasks[task].sources)
    )


def sum_active_costs(case: RackCase, placed: dict[str, int]) -> int:
    moved = sum(client != case.active[task] for task, client in placed.items())
    return count_distant(case, placed) * case.costs.traffic + moved * case.costs.non_overlap


@pytest.fixture(scope="module")
def kafkas(peer: object) -> Iterator[KafkasOptimizer]:
    """Start a JVM with Kafka Streams' optimizer; `peer` sees to it that there is one."""
    with start_java(SOURCE) as process:
        yield KafkasOptimizer(process)


def test_placements_cost_what_kafka_streams_placements_cost(kafkas: KafkasOptimizer) -> None:
    distant: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for seed in SEEDS:
        case = draw_case(random.Random(seed))
        ours, our_standbys = optimize_by_ours(case)
        theirs, their_standbys = kafkas.optimize(case)
        assert Counter(ours.values()) == Counter(theirs.values()), f"{seed=} {case}"
        assert sum_active_costs(case, ours) == sum_active_costs(case, theirs), f"{seed=} {case}"
        for label, placed in (("ours", ours), ("kafkas", theirs)):
            moved[label] += sum(client != case.active[task] for task, client in placed.items())
        decides = case.costs.traffic > case.costs.non_overlap
        if case.strategy == "min_traffic" and ours == theirs and decides:
            distant["before"] += count_distant(case, case.standby, is_standby=True)
            distant["ours"] += count_distant(case, our_standbys, is_standby=True)
            distant["kafkas"] += count_distant(case, their_standbys, is_standby=True)
    print(f"\nactive tasks moved: {dict(moved)}\nstandby partitions elsewhere: {dict(distant)}")
    assert moved["ours"] <= moved["kafkas"]
    assert distant["ours"] <= 1.05 * distant["kafkas"] < distant["before"]
