"""Define what an assignor of the application's own returns, and check it before it is used.

    error                                  the assignment
    UNKNOWN_TASK_ID                        names a task that the application does not have
    ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES    has a task active on several clients
    INVALID_STANDBY_TASK                   has a standby task of a task without state
    MISSING_PROCESS_ID                     leaves out a client
    UNKNOWN_PROCESS_ID                     names a client that is not in the group

Errors are looked for in this order, as in TaskAssignmentUtils.validateTaskAssignment. A task that
is assigned to nobody is no error there either: it does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple

from streams.task_assignment.application_state import ApplicationState

TaskType = Literal["active", "standby"]


class AssignmentError(StrEnum):
    """Names what is wrong with an assignment (Kafka Streams' TaskAssignor.AssignmentError)."""

    ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES = "ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES"
    INVALID_STANDBY_TASK = "INVALID_STANDBY_TASK"
    MISSING_PROCESS_ID = "MISSING_PROCESS_ID"
    UNKNOWN_PROCESS_ID = "UNKNOWN_PROCESS_ID"
    UNKNOWN_TASK_ID = "UNKNOWN_TASK_ID"


@dataclass(slots=True)
class KafkaStreamsAssignment:
    """Holds the tasks of one client: `active` or `standby` by task id.

    With `followup_rebalance_ms` the group rebalances again so many ms later, unless it has before:
    0 at once. The application's threads share the tasks of their client evenly.
    """

    process_id: str
    tasks: dict[str, TaskType] = field(default_factory=dict)
    followup_rebalance_ms: int | None = None

    def assign_task(self, task: str, task_type: TaskType = "active") -> None:
        """Add a task, or change its type."""
        self.tasks[task] = task_type

    def remove_task(self, task: str) -> None:
        """Remove a task, if it is there."""
        self.tasks.pop(task, None)

    def list_tasks(self, task_type: TaskType) -> list[str]:
        """Return the tasks of a type, sorted."""
        return sorted(task for task, each in self.tasks.items() if each == task_type)


TaskAssignor = Callable[[ApplicationState], Iterable[KafkaStreamsAssignment]]
"""Returns the assignment of every client, from the state of the application."""


class AssignmentFault(NamedTuple):
    """Holds an error of an assignment, and a sentence that says where it is."""

    error: AssignmentError
    explanation: str


def validate_task_assignment(
    state: ApplicationState, assignments: Iterable[KafkaStreamsAssignment]
) -> AssignmentError | None:
    """Return the first error of an assignment, None if it can be used.

    It is checked so after the assignor has returned, too.
    """
    fault = find_assignment_fault(state, assignments)
    return None if fault is None else fault.error


def find_assignment_fault(
    state: ApplicationState, assignments: Iterable[KafkaStreamsAssignment]
) -> AssignmentFault | None:
    """Return the first error of an assignment with its explanation, None if it can be used."""
    assignments = list(assignments)
    active: dict[str, str] = {}
    standby: dict[str, str] = {}
    for each in assignments:
        for task, task_type in each.tasks.items():
            if task not in state.all_tasks:
                text = f"client {each.process_id!r} is to have {task!r}, and there is no such task"
                return AssignmentFault(AssignmentError.UNKNOWN_TASK_ID, text)
            if task_type == "active" and task in active:
                clients = f"{active[task]!r} and {each.process_id!r}"
                text = f"task {task!r} is to be active on the clients {clients}"
                return AssignmentFault(AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES, text)
            (active if task_type == "active" else standby)[task] = each.process_id
    for task, process_id in standby.items():
        if not state.all_tasks[task].is_stateful:
            text = (
                f"client {process_id!r} is to have a standby task of {task!r}, which has no state"
            )
            return AssignmentFault(AssignmentError.INVALID_STANDBY_TASK, text)
    named = [each.process_id for each in assignments]
    for process_id in state.kafka_streams_states:
        if process_id not in named:
            text = f"client {process_id!r} is left out: give it an assignment without tasks"
            return AssignmentFault(AssignmentError.MISSING_PROCESS_ID, text)
    for process_id in named:
        if process_id not in state.kafka_streams_states:
            text = f"there is no client {process_id!r} in the group"
            return AssignmentFault(AssignmentError.UNKNOWN_PROCESS_ID, text)
    return None


def identity_assignment(state: ApplicationState) -> dict[str, KafkaStreamsAssignment]:
    """Return what each client has run since the last rebalance, by process id.

    A task that nobody ran, as it is new or its client is gone, is in none, and so is one that there
    is no more, as its topic is gone. Kafka Streams' counterpart is
    TaskAssignmentUtils.identityAssignment.
    """
    return {
        process_id: KafkaStreamsAssignment(
            process_id,
            {
                **dict.fromkeys(each.previous_standby_tasks & state.all_tasks.keys(), "standby"),
                **dict.fromkeys(each.previous_active_tasks & state.all_tasks.keys(), "active"),
            },
        )
        for process_id, each in state.kafka_streams_states.items()
    }
