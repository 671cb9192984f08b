"""Assign tasks by the application's own assignor, `task_assignor` (KIP-924).

    the group, its lags and changelogs -> ApplicationState    (`describe_clients`)
      -> the application's function
      -> its assignment is checked                              (`find_assignment_fault`)
      -> the tasks of each client are shared by its threads     (`share_client_tasks`)

The leader calls it in each rebalance, once. An assignment with an error is not used: the leader's
thread ends with the error's name, as it does if the function raises. If it raises
TaskAssignmentError, the threads of all members end. Source: StreamsPartitionAssignor
(assignTasksToClients, buildApplicationState, processStreamsPartitionAssignment).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from coordinator.assignors.tasks import (
    AssignmentConfigs,
    AssignmentInput,
    ClientTasks,
    TaskAssignment,
    share_client_tasks,
)
from streams.common.topic_partitions import Partition
from streams.errors import StreamsError, TaskAssignmentError
from streams.membership.protocol import SubscriptionInfo
from streams.runtime.assigning.task_lags import TaskChangelogs
from streams.task_assignment.application_state import (
    ApplicationState,
    KafkaStreamsState,
    TaskInfo,
    TaskTopicPartition,
)
from streams.task_assignment.client_assignment import (
    KafkaStreamsAssignment,
    TaskAssignor,
    find_assignment_fault,
)
from streams.topology.declared import DeclaredSubtopology

log = logging.getLogger(__name__)


def describe_tasks(
    subtopologies: Mapping[int, DeclaredSubtopology],
    sources: Mapping[str, Collection[Partition]],
    changelogs: TaskChangelogs,
    racks: Mapping[Partition, frozenset[str]],
) -> dict[str, TaskInfo]:
    """Describe each task of `sources` for an assignor: the partitions it reads, and its stores."""
    described = {}
    for task, read in sources.items():
        restored = {*changelogs.ending.get(task, ()), *changelogs.committed.get(task, ())}
        number, _, _ = task.partition("_")
        described[task] = TaskInfo(
            task,
            task in changelogs.stateful_tasks,
            subtopologies[int(number)].stores,
            frozenset(
                TaskTopicPartition(
                    partition.topic,
                    partition.number,
                    is_source=partition in read,
                    is_changelog=partition in restored,
                    rack_ids=racks.get(partition, frozenset()),
                )
                for partition in {*read, *restored}
            ),
        )
    return described


def describe_clients(
    state: AssignmentInput, members: Mapping[str, SubscriptionInfo], *, are_lags_known: bool
) -> dict[str, KafkaStreamsState]:
    """Describe each client of a group for an assignor; without lags where none are known."""
    standby: dict[str, set[str]] = {}
    for task, holders in state.standby_holders.items():
        for member in holders:
            standby.setdefault(member, set()).add(task)
    active: dict[str, set[str]] = {}
    for task, member in state.owners.items():
        active.setdefault(member, set()).add(task)
    described = {}
    for name, client in state.clients.items():
        own = sorted(client.members)
        lags = {
            task: client.lags.get(task, state.changelog_sizes.get(task))
            for task in (state.stateful_tasks if are_lags_known else ())
        }
        described[name] = KafkaStreamsState(
            name,
            len(own),
            {
                member: frozenset({*active.get(member, ()), *standby.get(member, ())})
                for member in own
            },
            frozenset(task for member in own for task in active.get(member, ())),
            frozenset(task for member in own for task in standby.get(member, ())),
            {task: lag for task, lag in lags.items() if lag is not None},
            client.tags,
            next((members[member].endpoint for member in own if members[member].endpoint), ""),
            next((members[member].rack for member in own if members[member].rack), ""),
        )
    return described


def assign_by_application(
    assignor: TaskAssignor,
    state: AssignmentInput,
    tasks: Mapping[str, TaskInfo],
    clients: Mapping[str, KafkaStreamsState],
    configs: AssignmentConfigs,
    *,
    are_lags_known: bool = True,
) -> TaskAssignment:
    """Assign tasks by the application's own assignor; share each client's among its members.

    Where lags are not known one member is to join again later, unless the assignor has asked for a
    rebalance that comes before.

    Raises: TaskAssignmentError if the assignor does; StreamsError for anything else that it raises,
    and for an assignment that can't be used.
    """
    given = ApplicationState(tasks, clients, configs)
    assignments = _call_assignor(assignor, given)
    if fault := find_assignment_fault(given, assignments):
        raise StreamsError(
            f"task_assignor returned an assignment that can't be used: {fault.error}: "
            f"{fault.explanation}"
        )
    by_client = {each.process_id: each for each in assignments}
    active = {task for each in assignments for task in each.list_tasks("active")}
    if left_out := sorted(tasks.keys() - active):
        log.warning(
            "task_assignor assigned these tasks to no client, so that nothing processes them: %s",
            ", ".join(left_out),
        )
    shared = share_client_tasks(
        {
            name: ClientTasks(each.list_tasks("active"), each.list_tasks("standby"))
            for name, each in by_client.items()
        },
        state,
    )
    rejoin_ms = {
        min(state.clients[name].members): max(1, each.followup_rebalance_ms)
        for name, each in by_client.items()
        if each.followup_rebalance_ms is not None
    }
    if not are_lags_known:
        interval_ms = configs.probing_rebalance_interval_ms
        if interval_ms < min(rejoin_ms.values(), default=interval_ms + 1):
            rejoin_ms = {min(shared): interval_ms}
    return TaskAssignment(shared, False, rejoin_ms)


def _call_assignor(assignor: TaskAssignor, state: ApplicationState) -> list[KafkaStreamsAssignment]:
    """Call the application's own assignor, and return its assignment after type checks.

    Raises: TaskAssignmentError as it is, StreamsError for anything else.
    """
    try:
        assignments = list(assignor(state))
    except TaskAssignmentError:
        raise
    except Exception as error:
        raise StreamsError(f"task_assignor failed: {type(error).__name__}: {error}") from error
    for each in assignments:
        if not isinstance(each, KafkaStreamsAssignment):
            raise StreamsError(
                f"task_assignor returned {each!r} among its assignments, and not a "
                "KafkaStreamsAssignment"
            )
        _check_types(each)
        for task, task_type in each.tasks.items():
            if task_type not in ("active", "standby"):
                raise StreamsError(
                    f"task_assignor assigned task {task!r} as {task_type!r}, which is neither "
                    "'active' nor 'standby'"
                )
    names = [each.process_id for each in assignments]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise StreamsError(f"task_assignor returned two assignments of client {twice[0]!r}")
    return assignments


def _check_types(assignment: KafkaStreamsAssignment) -> None:
    """Raise StreamsError for a field of another type than it is declared with."""
    tasks, rebalance_ms = assignment.tasks, assignment.followup_rebalance_ms
    if not isinstance(tasks, Mapping):
        raise StreamsError(
            f"task_assignor returned tasks={tasks!r:.200} for client {assignment.process_id!r}: "
            "give a dict of task ids with 'active' or 'standby'"
        )
    is_whole = isinstance(rebalance_ms, int) and not isinstance(rebalance_ms, bool)
    if rebalance_ms is not None and not (is_whole and 0 <= rebalance_ms < 2**31):
        raise StreamsError(
            f"task_assignor returned followup_rebalance_ms={rebalance_ms!r} for client "
            f"{assignment.process_id!r}: give a whole number of milliseconds from 0 to 2^31-1, or "
            "None"
        )
