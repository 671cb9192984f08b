"""Take a group of a stream application through a history, with either assignor of tasks.

A history is a group that starts, comes to rest, and then has a client join, leave or restart, and
comes to rest again. Between two rebalances every copy of a task's state catches up.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from coordinator.assignors.tasks import AssignmentConfigs, AssignmentInput, ClientState

ROUND_LIMIT = 200
CHANGELOG_SIZE = 10**9
EVENTS = ("join", "leave", "restart")


class Assigned(NamedTuple):
    """Holds the clients that run each task, and those that have a standby or warm-up of it."""

    active: Mapping[str, str]
    copies: Mapping[str, frozenset[str]]
    is_probing_needed: bool


Assignor = Callable[[AssignmentInput, AssignmentConfigs], Assigned]


class Result(NamedTuple):
    """Holds what a history has come to: the balance at rest, and what the event has moved.

    A spread is between the fullest and the emptiest thread, where a client's threads share its
    tasks evenly.
    """

    stateful_spread: int
    active_spread: int
    standby_spread: int
    total_spread: int
    moved: int
    """How many times a task has changed its client."""
    restored: int
    """How many copies were placed where a client had no state of the task."""
    rounds: int


class History(NamedTuple):
    """Holds a group before it starts, its settings, and its event."""

    state: AssignmentInput
    configs: AssignmentConfigs
    event: str


def draw_history(rng: random.Random) -> History:
    tasks = {
        f"{sub}_{partition}": rng.random() < 0.7
        for sub in range(rng.randint(1, 4))
        for partition in range(rng.randint(1, 12))
    }
    tags = rng.choice([(), ("zone",)])
    clients = {
        f"c{number}": ClientState(
            [f"c{number}-{thread}" for thread in range(rng.randint(1, 4))],
            {},
            {"zone": rng.choice("xyz")},
        )
        for number in range(rng.randint(2, 8))
    }
    stateful = [task for task, is_stateful in tasks.items() if is_stateful]
    state = AssignmentInput(
        stateful,
        [task for task, is_stateful in tasks.items() if not is_stateful],
        clients,
        changelog_sizes=dict.fromkeys(stateful, CHANGELOG_SIZE),
    )
    configs = AssignmentConfigs(rng.randint(0, 2), rng.randint(1, 4), 10_000, tags)
    return History(state, configs, rng.choice(EVENTS))


def run_history(history: History, rng: random.Random, assign: Assignor) -> Result:
    """Take a group through its history with one assignor."""
    state, assigned, _ = _settle(history.state, history.configs, assign)
    name = rng.choice(sorted(state.clients))
    if history.event == "join":
        joiner = ClientState([f"new-{thread}" for thread in range(rng.randint(1, 4))])
        joiner = joiner._replace(tags=state.clients[name].tags)
        state = state._replace(clients={**state.clients, rng.choice(["a-new", "z-new"]): joiner})
    else:
        gone = state.clients[name]
        state = state._replace(
            clients={n: each for n, each in state.clients.items() if n != name},
            owners={t: m for t, m in state.owners.items() if m not in gone.members},
            standby_holders={
                t: set(held) - set(gone.members) for t, held in state.standby_holders.items()
            },
        )
        if history.event == "restart":
            state = state._replace(clients={**state.clients, name: gone})
    before = assigned.active
    state, assigned, rounds = _settle(state, history.configs, assign)
    counts = _Counts(before)
    for each in rounds:
        counts.add(*each)
    threads = {name: len(client.members) for name, client in state.clients.items()}
    active, stateful = assigned.active, set(state.stateful_tasks)
    standbys = [client for clients in assigned.copies.values() for client in clients]
    return Result(
        _spread([active[task] for task in stateful], threads),
        _spread(list(active.values()), threads),
        _spread(standbys, threads),
        _spread([*active.values(), *standbys], threads),
        counts.moved,
        counts.restored,
        len(rounds),
    )


class _Counts:
    """Counts what moves from round to round."""

    def __init__(self, active: Mapping[str, str]) -> None:
        self._active = active
        self.moved = self.restored = 0

    def add(self, state: AssignmentInput, assigned: Assigned) -> None:
        self.moved += sum(client != self._active[task] for task, client in assigned.active.items())
        self._active = assigned.active
        for task in state.stateful_tasks:
            for client in {assigned.active[task], *assigned.copies.get(task, ())}:
                self.restored += task not in state.clients[client].lags


def _spread(clients: list[str], threads: Mapping[str, int]) -> int:
    counts = Counter(clients)
    fullest = max(-(-counts[client] // count) for client, count in threads.items())
    return fullest - min(counts[client] // count for client, count in threads.items())


def _settle(
    state: AssignmentInput, configs: AssignmentConfigs, assign: Assignor
) -> tuple[AssignmentInput, Assigned, list[tuple[AssignmentInput, Assigned]]]:
    """Rebalance until nothing is on its way; return the group, and each round with its outcome."""
    rounds = []
    for _ in range(ROUND_LIMIT):
        assigned = assign(state, configs)
        rounds.append((state, assigned))
        state = _apply(state, assigned)
        if not assigned.is_probing_needed:
            return state, assigned, rounds
    raise AssertionError(f"not at rest after {ROUND_LIMIT} rounds: {state} {configs}")


def _apply(state: AssignmentInput, assigned: Assigned) -> AssignmentInput:
    """Return the group when all has been taken over and caught up; idle state is kept as it is.

    A client's first member stands for all: neither assignor's placement on clients depends on it.
    """
    copies = {
        task: {assigned.active[task], *assigned.copies.get(task, ())}
        for task in state.stateful_tasks
    }
    clients = {
        name: client._replace(
            lags={**client.lags, **{task: 0 for task, held in copies.items() if name in held}}
        )
        for name, client in state.clients.items()
    }
    first = {name: min(client.members) for name, client in clients.items()}
    return state._replace(
        clients=clients,
        owners={task: first[client] for task, client in assigned.active.items()},
        standby_holders={
            task: {first[client] for client in held} for task, held in assigned.copies.items()
        },
    )
