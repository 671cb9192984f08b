"""Let an application assign its tasks itself: what its assignor is given, and what it returns.

    def spread(state: task_assignment.ApplicationState) -> Iterable[KafkaStreamsAssignment]: ...

    App("shop", task_assignor=spread)

Start reading at `application_state`, then `client_assignment`. The leader of the group calls the
assignor in each rebalance (`streams.runtime.assigning.custom_assignment`). Kafka Streams'
counterpart is org.apache.kafka.streams.processor.assignment (KIP-924).
"""

from coordinator.assignors.tasks import AssignmentConfigs
from streams.errors import TaskAssignmentError
from streams.task_assignment.application_state import (
    ApplicationState,
    KafkaStreamsState,
    TaskInfo,
    TaskTopicPartition,
)
from streams.task_assignment.client_assignment import (
    AssignmentError,
    KafkaStreamsAssignment,
    TaskAssignor,
    identity_assignment,
    validate_task_assignment,
)

__all__ = [
    "ApplicationState",
    "AssignmentConfigs",
    "AssignmentError",
    "KafkaStreamsAssignment",
    "KafkaStreamsState",
    "TaskAssignmentError",
    "TaskAssignor",
    "TaskInfo",
    "TaskTopicPartition",
    "identity_assignment",
    "validate_task_assignment",
]
