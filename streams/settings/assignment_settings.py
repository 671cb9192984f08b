"""Define the settings by which tasks are assigned to workers."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from pydantic import PlainValidator
from pydantic_settings import BaseSettings

from streams.settings.choices import GroupProtocol
from streams.task_assignment.client_assignment import TaskAssignor


def _check_assignor(value: Any) -> TaskAssignor | None:
    """Return an assignor of tasks, or None. Raises ValueError for what is no function."""
    if value is None or (callable(value) and not isinstance(value, type)):
        return value
    raise ValueError(
        f"{value!r} is no function of an ApplicationState that returns assignments: "
        "App(..., task_assignor=function)"
    )


class AssignmentSettings(BaseSettings):
    """Holds the settings by which tasks are assigned."""

    task_assignor: Annotated[TaskAssignor | None, PlainValidator(_check_assignor)] = None
    """A function of an ApplicationState that returns a KafkaStreamsAssignment of each client, and
    that the leader of the group calls in each rebalance (KIP-924); None: tasks are assigned by how
    far their state is (KIP-441)."""


def check_assignor_protocol(assignor: TaskAssignor | None, group_protocol: GroupProtocol) -> None:
    """Raise ValueError if an assignor is given though the broker assigns the tasks."""
    if assignor is not None and group_protocol == "streams":
        raise ValueError(
            "task_assignor is not possible with group_protocol='streams', since the broker assigns "
            "tasks there: set group_protocol='classic', or leave task_assignor out"
        )


class AssignmentKeywords(TypedDict, total=False):
    """Holds the same settings as keyword arguments of `App`."""

    task_assignor: TaskAssignor | None
