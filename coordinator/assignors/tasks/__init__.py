"""Assign the tasks of a stream application: who runs which one, and who keeps a copy of its state.

Pure functions of what a group's leader knows, after KIP-441 (smooth scaling out of Kafka Streams)
and KIP-708 (rack aware standbys). Start reading at `state`, what goes in and comes out, then
`high_availability`, which has the steps in their order.
"""

from coordinator.assignors.tasks.high_availability import assign_tasks_and_replicas
from coordinator.assignors.tasks.racks import NO_STRATEGY, find_rack_obstacle
from coordinator.assignors.tasks.state import (
    AssignmentConfigs,
    AssignmentInput,
    ClientState,
    ClientTasks,
    MemberTasks,
    TaskAssignment,
    TaskRacks,
)
from coordinator.assignors.tasks.threads import share_client_tasks

__all__ = [
    "NO_STRATEGY",
    "AssignmentConfigs",
    "AssignmentInput",
    "ClientState",
    "ClientTasks",
    "MemberTasks",
    "TaskAssignment",
    "TaskRacks",
    "assign_tasks_and_replicas",
    "find_rack_obstacle",
    "share_client_tasks",
]
