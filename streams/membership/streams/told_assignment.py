"""Convert the tasks that a broker tells to the assignment that the runtime takes over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streams.membership.protocol import AssignmentInfo
from streams.membership.streams.member_state import TaskMembership
from streams.membership.streams.statuses import find_shutdown_reason
from streams.membership.streams.task_roles import TasksByRole, split_task_name
from streams.topology.declared import DeclaredTopology


def build_assignment(
    state: TaskMembership, declared: DeclaredTopology, partition_counts: Mapping[str, int]
) -> AssignmentInfo:
    """Build the assignment of a member from what it was told and what it has.

    Active tasks that it has and is not to have are `revoked`. `partition_counts` are those of all
    topics.
    """
    told = state.told
    copies = (told.standby | told.warmup) - told.active
    return AssignmentInfo(
        tuple(sorted(told.active, key=split_task_name)),
        _list_partitions(told.active, declared, partition_counts),
        shutdown=find_shutdown_reason(state.statuses),
        revoked=tuple(sorted(state.owned.active - told.active, key=split_task_name)),
        standby=tuple(sorted(told.standby, key=split_task_name)),
        warmup=tuple(sorted(told.warmup - told.standby, key=split_task_name)),
        following=_list_partitions(copies, declared, partition_counts),
        endpoints=state.endpoints.tasks,
    )


def knows_all_topics(
    told: TasksByRole, declared: DeclaredTopology, partition_counts: Mapping[str, int]
) -> bool:
    """Return whether all topics that the tasks read are among those whose counts are known."""
    return all(
        declared.subtopologies[int(split_task_name(task)[0])].sources <= partition_counts.keys()
        for role in told
        for task in role
    )


def group_tasks_by_role(assigned: AssignmentInfo) -> TasksByRole:
    """Return the tasks of an assignment by their roles."""
    return TasksByRole(
        frozenset(assigned.tasks), frozenset(assigned.standby), frozenset(assigned.warmup)
    )


def _list_partitions(
    tasks: Iterable[str], declared: DeclaredTopology, partition_counts: Mapping[str, int]
) -> tuple[tuple[str, int], ...]:
    """Return the partitions that tasks read, as far as topics have them."""
    return tuple(
        (topic, partition)
        for subtopology, partition in map(split_task_name, sorted(tasks))
        for topic in sorted(declared.subtopologies[int(subtopology)].sources)
        if partition < partition_counts.get(topic, 0)
    )
