"""Define the input of the assignment of tasks, and the assignment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple


class ClientState(NamedTuple):
    """Describes a client: a state directory and the members (threads) that share it.

    `lags` are in records: how far the state that the directory has of a task is behind the task's
    changelogs; 0 for a task that runs there. `tags` are its client tags (KIP-708), `racks` those
    that its members name: one, if all name the same. Kafka Streams' counterpart is ClientState.
    """

    members: Collection[str]
    lags: Mapping[str, int] = MappingProxyType({})
    tags: Mapping[str, str] = MappingProxyType({})
    racks: Collection[str] = ()


class TaskRacks(NamedTuple):
    """Holds the racks of the replicas of each partition that a task reads, and of its changelogs.

    A partition has no racks where the brokers don't tell those of all replicas.
    """

    sources: Sequence[frozenset[str]]
    changelogs: Sequence[frozenset[str]] = ()


class AssignmentInput(NamedTuple):
    """Describes an application's group at a rebalance: its tasks, its clients, and who runs what.

    `owners` has the member that runs each active task now, `standby_holders` the members that run
    a standby or warm-up task of it; members that are gone do no harm. `eligible_members` has the
    members that may run each task, if not all may run all (versions of a topology side by side).
    `changelog_sizes`, in records, are the lags of clients without any state of a task; one without
    a size is taken for too large. `task_racks` are known only if assignment follows racks. Kafka
    Streams' counterpart is ApplicationState.
    """

    stateful_tasks: Collection[str]
    stateless_tasks: Collection[str]
    clients: Mapping[str, ClientState]
    owners: Mapping[str, str] = MappingProxyType({})
    standby_holders: Mapping[str, Collection[str]] = MappingProxyType({})
    eligible_members: Mapping[str, Collection[str]] | None = None
    changelog_sizes: Mapping[str, int] = MappingProxyType({})
    task_racks: Mapping[str, TaskRacks] = MappingProxyType({})


class AssignmentConfigs(NamedTuple):
    """Holds the settings of the assignment, with Kafka Streams' names and defaults."""

    num_standby_replicas: int = 0
    max_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000
    """A client whose lag, in records, is not above this is caught up."""
    rack_aware_assignment_tags: Collection[str] = ()
    probing_rebalance_interval_ms: int = 600_000
    rack_aware_assignment_strategy: str = "none"
    """`min_traffic` or `balance_subtopology`: tasks run near the replicas of what they read
    (KIP-925)."""
    rack_aware_assignment_traffic_cost: int | None = None
    """The cost of a partition without a replica in the client's rack; None is Kafka's default."""
    rack_aware_assignment_non_overlap_cost: int | None = None
    """The cost of a task that is not at the client that it would have without regard to racks."""


class ClientTasks(NamedTuple):
    """Holds the active tasks of one client, and its standby tasks."""

    active: Collection[str] = ()
    standby: Collection[str] = ()


class MemberTasks(NamedTuple):
    """Holds the tasks of one member, each list in the order of partitions."""

    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()
    warmup: tuple[str, ...] = ()


class TaskAssignment(NamedTuple):
    """Holds the tasks of every member, and whether they are on their way to other members.

    Then the group is to rebalance again after a while (a probing rebalance), as members may have
    caught up by then. `rejoin_ms` has the members that are to join again by themselves, and when.
    """

    members: Mapping[str, MemberTasks]
    is_probing_needed: bool
    rejoin_ms: Mapping[str, int] = MappingProxyType({})
