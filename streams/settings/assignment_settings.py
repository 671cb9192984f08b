"""Define the settings by which tasks are assigned to workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from pydantic import Field, PlainValidator
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


RackAwareStrategy = Literal["none", "min_traffic", "balance_subtopology"]
RackCost = Annotated[int | None, Field(ge=0)]
_RACK_SETTING = "client.rack"


class AssignmentSettings(BaseSettings):
    """Holds the settings by which tasks are assigned."""

    task_assignor: Annotated[TaskAssignor | None, PlainValidator(_check_assignor)] = None
    """A function of an ApplicationState that returns a KafkaStreamsAssignment of each client, and
    that the leader of the group calls in each rebalance (KIP-924); None: tasks are assigned by how
    far their state is (KIP-441)."""
    client_rack: str = ""
    """The rack or zone of this worker, as brokers name theirs (`broker.rack`): consumers fetch from
    replicas there (KIP-392). `client.rack` of `consumer` or `main_consumer` goes over it."""
    rack_aware_assignment_strategy: RackAwareStrategy = "none"
    """How tasks are placed near the replicas of what they read: `none`, `min_traffic`, or
    `balance_subtopology`, which also spreads each sub-topology over the workers (KIP-925)."""
    rack_aware_assignment_traffic_cost: RackCost = None
    """What each partition costs of which a task with state has no replica in its rack; None: 10."""
    rack_aware_assignment_non_overlap_cost: RackCost = None
    """What it costs that a task with state runs elsewhere than without regard to racks; None: 1."""


def check_assignor_protocol(assignor: TaskAssignor | None, group_protocol: GroupProtocol) -> None:
    """Raise ValueError if an assignor is given though the broker assigns the tasks."""
    if assignor is not None and group_protocol == "streams":
        raise ValueError(
            "task_assignor is not possible with group_protocol='streams', since the broker assigns "
            "tasks there: set group_protocol='classic', or leave task_assignor out"
        )


def find_client_rack(
    client_rack: str, consumer: Mapping[str, Any], main_consumer: Mapping[str, Any]
) -> str:
    """Return the rack of the consumers that read inputs, from all settings that may name it."""
    return str({_RACK_SETTING: client_rack, **consumer, **main_consumer}[_RACK_SETTING])


class AssignmentKeywords(TypedDict, total=False):
    """Holds the same settings as keyword arguments of `App`."""

    task_assignor: TaskAssignor | None
    client_rack: str
    rack_aware_assignment_strategy: RackAwareStrategy
    rack_aware_assignment_traffic_cost: int | None
    rack_aware_assignment_non_overlap_cost: int | None
