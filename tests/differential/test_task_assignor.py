"""Test the assignor of tasks against Kafka Streams' own, HighAvailabilityTaskAssignor.

Kafka's places stateful tasks without regard to where they run, so it moves more; balance and
movement are compared over random histories, and printed (`pytest -s`).
"""

from __future__ import annotations

import json
import random
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coordinator.assignors.tasks import (
    AssignmentConfigs,
    AssignmentInput,
    assign_tasks_and_replicas,
)
from tests.differential.peer import JARS
from tests.differential.task_histories import (
    CHANGELOG_SIZE,
    EVENTS,
    Assigned,
    History,
    Result,
    draw_history,
    run_history,
)
from tests.kafka.server import JVM_FLAGS
from tests.processes import HANG_LIMIT_S

SOURCE = Path(__file__).with_name("TaskAssignor.java")
SEEDS = range(300)
RUNNING = -2
"""The lag of a task that runs (Task.LATEST_OFFSET)."""


class Compared(NamedTuple):
    """Holds a history, and what both assignors have made of it."""

    seed: int
    history: History
    ours: Result
    kafkas: Result


class KafkasAssignor:
    """Asks a JVM that runs Kafka Streams' assignor."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def assign(self, state: AssignmentInput, configs: AssignmentConfigs) -> Assigned:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(_ask(state, configs)) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        named = list(zip(sorted(state.clients), answer["clients"], strict=True))
        copies: dict[str, set[str]] = {}
        for name, client in named:
            for task in client.get("standby", ()):
                copies.setdefault(task, set()).add(name)
        return Assigned(
            {task: name for name, client in named for task in client.get("active", ())},
            {task: frozenset(held) for task, held in copies.items()},
            answer["probing"],
        )


def _ask(state: AssignmentInput, configs: AssignmentConfigs) -> dict[str, Any]:
    clients = []
    for name in sorted(state.clients):
        client = state.clients[name]
        active = [task for task, member in state.owners.items() if member in client.members]
        lags = {
            task: RUNNING if task in active else client.lags.get(task, CHANGELOG_SIZE)
            for task in state.stateful_tasks
        }
        held = state.standby_holders.items()
        clients.append(
            {
                "threads": len(client.members),
                "lags": lags,
                "tags": dict(client.tags),
                "active": active,
                "standby": [task for task, members in held if set(client.members) & set(members)],
            }
        )
    return {
        "stateful": list(state.stateful_tasks),
        "stateless": list(state.stateless_tasks),
        "standbys": configs.num_standby_replicas,
        "warmups": configs.max_warmup_replicas,
        "lag": configs.acceptable_recovery_lag,
        "tags": list(configs.rack_aware_assignment_tags),
        "clients": clients,
    }


def assign_by_ours(state: AssignmentInput, configs: AssignmentConfigs) -> Assigned:
    """Assign by the assignor under test, and return the clients of its members."""
    assigned = assign_tasks_and_replicas(state, configs)
    client_of = {m: name for name, client in state.clients.items() for m in client.members}
    copies: dict[str, set[str]] = {}
    for member, mine in assigned.members.items():
        for task in (*mine.standby, *mine.warmup):
            copies.setdefault(task, set()).add(client_of[member])
    return Assigned(
        {task: client_of[m] for m, mine in assigned.members.items() for task in mine.active},
        {task: frozenset(held) for task, held in copies.items()},
        assigned.is_probing_needed,
    )


@contextmanager
def start_java(source: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a file of Java with Kafka Streams' classes, which answers line by line."""
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    flags = [flag for flag in JVM_FLAGS if "defaultLogLevel" not in flag]
    with subprocess.Popen(
        ["java", *flags, quiet, "-cp", JARS.class_path(), str(source)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        watchdog = threading.Timer(HANG_LIMIT_S, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


@pytest.fixture(scope="module")
def kafkas(peer: object) -> Iterator[KafkasAssignor]:
    """Start a JVM with Kafka Streams' assignor; `peer` sees to it that there is one."""
    with start_java(SOURCE) as process:
        yield KafkasAssignor(process)


@pytest.fixture(scope="module")
def compared(kafkas: KafkasAssignor) -> list[Compared]:
    found = []
    for seed in SEEDS:
        history = draw_history(random.Random(seed))
        ours = run_history(history, random.Random(seed), assign_by_ours)
        theirs = run_history(history, random.Random(seed), kafkas.assign)
        found.append(Compared(seed, history, ours, theirs))
    _print_table(found)
    return found


def _print_table(compared: list[Compared]) -> None:
    print(f"\n{'event':8} {'':7} " + " ".join(f"{name:>15}" for name in Result._fields))
    for event in EVENTS:
        rows = [each for each in compared if each.history.event == event]
        for label in ("ours", "kafkas"):
            sums = [sum(column) for column in zip(*(getattr(r, label) for r in rows), strict=True)]
            print(f"{event:8} {label:7} " + " ".join(f"{total:15}" for total in sums))


def test_active_tasks_are_never_balanced_worse_than_kafkas(compared: list[Compared]) -> None:
    for each in compared:
        assert each.ours.stateful_spread <= min(1, each.kafkas.stateful_spread), each
        assert each.ours.active_spread <= min(1, each.kafkas.active_spread), each


def test_copies_are_balanced_as_well_as_kafkas(compared: list[Compared]) -> None:
    """Check the sums: who holds which copy bounds what either assignor can do in one group."""
    for field in ("standby_spread", "total_spread"):
        ours = sum(getattr(each.ours, field) for each in compared)
        assert ours <= 1.05 * sum(getattr(each.kafkas, field) for each in compared)


def test_no_history_moves_more_tasks_or_takes_more_rounds_than_kafkas(
    compared: list[Compared],
) -> None:
    for each in compared:
        assert each.ours.moved <= each.kafkas.moved, each
        assert each.ours.rounds <= each.kafkas.rounds, each
