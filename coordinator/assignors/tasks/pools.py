"""Divide the members into pools, and tell which pool may run a task, and how far its state is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from coordinator.assignors.tasks.replicas import PoolNumber, partition_sort_key
from coordinator.assignors.tasks.state import AssignmentConfigs, AssignmentInput

UNKNOWN_LAG = 2**63 - 1
"""Stands for the lag of a client without state of a task whose changelogs may have any size."""


class Pool(NamedTuple):
    """Holds the members of a client that may run the same tasks.

    They are all members of the client, unless versions of a topology share its state directory.
    """

    client: str
    members: tuple[str, ...]


class Pools:
    """Finds the pools that may run a task, its current owner, and the state that each has of it.

    Pools are known by their index in `pools`, which does not depend on the order of the input.
    """

    def __init__(self, state: AssignmentInput, configs: AssignmentConfigs) -> None:
        self.state = state
        self.configs = configs
        self.pools = _divide_into_pools(state)
        self.thread_counts = {i: len(pool.members) for i, pool in enumerate(self.pools)}
        self.pool_of_member = {m: i for i, pool in enumerate(self.pools) for m in pool.members}
        busy = set(state.owners.values()).union(*state.standby_holders.values())
        self._starting_clients = {
            name for name, client in state.clients.items() if not busy.issuperset(client.members)
        }
        self._eligible = {
            task: sorted({self.pool_of_member[m] for m in members if m in self.pool_of_member})
            for task, members in (state.eligible_members or {}).items()
        }
        self._holding_clients = {
            task: {self.client_of(i) for i in self._find_pools_of_members(members)}
            for task, members in state.standby_holders.items()
        }

    def client_of(self, pool: PoolNumber) -> str:
        """Return the client of a pool."""
        return self.pools[pool].client

    def find_eligible(self, task: str) -> list[PoolNumber]:
        """Return the pools that may run a task."""
        if self.state.eligible_members is None:
            return list(self.thread_counts)
        return self._eligible.get(task, [])

    def find_owner(self, task: str) -> PoolNumber | None:
        """Return the pool that runs a task now, if it may run it still."""
        owner = self.pool_of_member.get(self.state.owners.get(task, ""))
        return owner if owner in self.find_eligible(task) else None

    def lag_of(self, task: str, pool: PoolNumber) -> int:
        """Return how many records of a task's changelogs a pool would have to restore."""
        lag = self.state.clients[self.client_of(pool)].lags.get(task)
        return self.state.changelog_sizes.get(task, UNKNOWN_LAG) if lag is None else lag

    def is_caught_up(self, task: str, pool: PoolNumber) -> bool:
        """Return whether a pool can run a task soon: its lag is acceptable (KIP-441)."""
        return self.lag_of(task, pool) <= self.configs.acceptable_recovery_lag

    def find_caught_up(self, task: str) -> list[PoolNumber]:
        """Return the pools that may run a task and are caught up."""
        return [pool for pool in self.find_eligible(task) if self.is_caught_up(task, pool)]

    def is_standby_holder(self, task: str, pool: PoolNumber) -> bool:
        """Return whether a pool's client runs a standby or warm-up task of a task now."""
        return self.client_of(pool) in self._holding_clients.get(task, ())

    def has_standby_elsewhere(self, task: str, pool: PoolNumber) -> bool:
        """Return whether a client other than a pool's runs a standby or warm-up task of a task."""
        return bool(self._holding_clients.get(task, set()) - {self.client_of(pool)})

    def rank_by_state(self, task: str, pool: PoolNumber) -> tuple[bool, bool, int]:
        """Return a key that is least for the pool that can take over soonest a task without owner.

        Among those that are caught up it is one with a member that has just started, since it may
        have run the task before: a restart moves nothing.
        """
        is_caught_up = self.is_caught_up(task, pool)
        was_owner = self.client_of(pool) in self._starting_clients and not self.is_standby_holder(
            task, pool
        )
        return not is_caught_up, is_caught_up and not was_owner, self.lag_of(task, pool)

    def _find_pools_of_members(self, members: Iterable[str]) -> list[PoolNumber]:
        return [self.pool_of_member[m] for m in members if m in self.pool_of_member]


def _divide_into_pools(state: AssignmentInput) -> list[Pool]:
    tasks_of_member: dict[str, set[str]] = {}
    for task, members in (state.eligible_members or {}).items():
        for member in members:
            tasks_of_member.setdefault(member, set()).add(task)
    members_by_pool: dict[tuple[str, frozenset[str]], list[str]] = {}
    for name, client in state.clients.items():
        for member in client.members:
            tasks = frozenset(tasks_of_member.get(member, ()))
            members_by_pool.setdefault((name, tasks), []).append(member)
    return sorted(
        Pool(client, tuple(sorted(members))) for (client, _), members in members_by_pool.items()
    )


def list_tasks(tasks: Collection[str], pools: Pools) -> list[str]:
    """Return the tasks that some pool may run, those with the least choice first."""
    runnable = [task for task in tasks if pools.find_eligible(task)]
    return sorted(runnable, key=lambda t: (len(pools.find_eligible(t)), partition_sort_key(t)))
