"""Generate groups of stream applications, and carry out what is assigned to them."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st

from coordinator.assignors.tasks import (
    AssignmentConfigs,
    AssignmentInput,
    ClientState,
    TaskAssignment,
    assign_tasks_and_replicas,
)

ZONES = ("z1", "z2", "z3")
CLUSTERS = ("c1", "c2")
TAGS = ("zone", "cluster")


@st.composite
def some_configs(draw: st.DrawFn) -> AssignmentConfigs:
    return AssignmentConfigs(
        draw(st.integers(0, 3)),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([0, 100, 10_000])),
        draw(st.sampled_from([(), ("zone",), TAGS])),
    )


@st.composite
def some_clients(
    draw: st.DrawFn, client_count_min: int = 1, client_count_max: int = 5
) -> dict[str, ClientState]:
    """Generate clients of one to three members, without any state."""
    count = draw(st.integers(client_count_min, client_count_max))
    return {
        f"c{number}": ClientState(
            [f"c{number}-m{member}" for member in range(draw(st.integers(1, 3)))],
            {},
            {"zone": draw(st.sampled_from(ZONES)), "cluster": draw(st.sampled_from(CLUSTERS))},
        )
        for number in range(count)
    }


@st.composite
def some_groups(
    draw: st.DrawFn, *, is_mixed: bool = False, client_count_min: int = 1
) -> AssignmentInput:
    """Generate a group in any state; `is_mixed`: not every member may run every task."""
    counts = draw(st.lists(st.tuples(st.booleans(), st.integers(1, 6)), max_size=4))
    named = [(f"{s}_{p}", stateful) for s, (stateful, n) in enumerate(counts) for p in range(n)]
    tasks = [task for task, _ in named]
    stateful_tasks = [task for task, is_stateful in named if is_stateful]
    clients = draw(some_clients(client_count_min))
    members = [member for client in clients.values() for member in client.members]
    lags = st.sampled_from([0, 0, 5, 100, 101, 10_000, 10_001, 10**9])
    clients = {
        name: client._replace(
            lags={task: draw(lags) for task in stateful_tasks if draw(st.booleans())}
        )
        for name, client in clients.items()
    }
    some_members = st.sampled_from([*members, "gone"])
    return AssignmentInput(
        stateful_tasks,
        [task for task, is_stateful in named if not is_stateful],
        clients,
        {task: draw(some_members) for task in [*tasks, "9_9"] if draw(st.booleans())},
        {task: draw(st.sets(some_members, max_size=3)) for task in stateful_tasks},
        {task: draw(st.sets(some_members, max_size=4)) for task in tasks} if is_mixed else None,
        {task: draw(lags) for task in stateful_tasks if draw(st.booleans())},
    )


@st.composite
def some_settled_groups(
    draw: st.DrawFn, *, client_count_min: int = 1
) -> tuple[AssignmentInput, AssignmentConfigs]:
    """Generate a group that has come to rest."""
    state, configs = draw(some_groups(client_count_min=client_count_min)), draw(some_configs())
    assume(state.stateful_tasks or state.stateless_tasks)
    settled, _, _ = settle(state, configs)
    return settled, configs


def apply_assignment(state: AssignmentInput, assigned: TaskAssignment) -> AssignmentInput:
    """Return the group after it has taken an assignment over, and all copies have caught up."""
    owners = {t: m for m, mine in assigned.members.items() for t in mine.active}
    holders: dict[str, set[str]] = {}
    for member, mine in assigned.members.items():
        for task in (*mine.standby, *mine.warmup):
            holders.setdefault(task, set()).add(member)
    clients = {}
    for name, client in state.clients.items():
        lags = dict(client.lags)
        for member in client.members:
            mine = assigned.members[member]
            for task in (*mine.active, *mine.standby, *mine.warmup):
                if task in state.stateful_tasks:
                    lags[task] = 0
        clients[name] = client._replace(lags=lags)
    return state._replace(clients=clients, owners=owners, standby_holders=holders)


def settle(
    state: AssignmentInput, configs: AssignmentConfigs
) -> tuple[AssignmentInput, TaskAssignment, int]:
    """Rebalance until a group is at rest; return it, its assignment, and the number of rounds."""
    for number in range(1, find_round_limit(state, configs) + 1):
        assigned = assign_tasks_and_replicas(state, configs)
        next_state = apply_assignment(state, assigned)
        if next_state == state and not assigned.is_probing_needed:
            return state, assigned, number
        state = next_state
    raise AssertionError(f"not at rest: {assigned}")


def find_round_limit(state: AssignmentInput, configs: AssignmentConfigs) -> int:
    """Return how many rounds a group may take to come to rest.

    Every copy may have to move once, `max_warmup_replicas` of them a round; then one round has
    stateless tasks follow, and two change nothing.
    """
    copies = len(state.stateful_tasks) * (1 + configs.num_standby_replicas)
    return -(-copies // configs.max_warmup_replicas) + 4


def client_by_member(state: AssignmentInput) -> dict[str, str]:
    return {m: name for name, client in state.clients.items() for m in client.members}


def clients_by_task(
    state: AssignmentInput, assigned: TaskAssignment, kind: str
) -> dict[str, list[str]]:
    """Return the clients that have a copy of each task, of one kind: a field of MemberTasks."""
    client_of = client_by_member(state)
    found: dict[str, list[str]] = {}
    for member in sorted(assigned.members):
        for task in getattr(assigned.members[member], kind):
            found.setdefault(task, []).append(client_of[member])
    return found


def eligible_clients(state: AssignmentInput, task: str) -> set[str]:
    """Return the clients with a member that may run a task."""
    client_of = client_by_member(state)
    if state.eligible_members is None:
        return set(client_of.values())
    return {client_of[m] for m in state.eligible_members[task] if m in client_of}


def lag_of(state: AssignmentInput, task: str, client: str) -> float:
    default = state.changelog_sizes.get(task, float("inf"))
    return state.clients[client].lags.get(task, default)


def count_by_member(assigned: TaskAssignment, tasks: set[str]) -> list[int]:
    """Return how many of some tasks are active on each member."""
    return [len(tasks & set(mine.active)) for mine in assigned.members.values()]
