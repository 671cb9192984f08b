"""Describe a group at a rebalance for an assignor of the application's own (KIP-924).

    ApplicationState
      all_tasks               TaskInfo by task id: its topics, its stores
      kafka_streams_states    KafkaStreamsState by process id: its threads, tasks, lags and tags
      assignment_configs      the settings of the leader

A task is named `SUBTOPOLOGY_PARTITION`, as in `0_3`. A process id names a state directory: workers
that share one are one client, as in Kafka Streams, which keeps the id in that directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from coordinator.assignors.tasks import AssignmentConfigs

SubtopologyNumber: TypeAlias = int
PartitionNumber: TypeAlias = int


class TaskTopicPartition(NamedTuple):
    """Describes a partition that a task reads, or restores a store from.

    `rack_ids` are the racks of the brokers that hold its replicas; empty where the brokers tell
    none, or did not answer. A table's input that needs no changelog is both source and changelog.
    """

    topic: str
    partition: int
    is_source: bool
    is_changelog: bool
    rack_ids: frozenset[str] = frozenset()


class TaskInfo(NamedTuple):
    """Describes a task: its id, its stores, and the partitions that it reads and restores.

    It is stateful if one of its stores is restored from a topic: only then has it standby tasks.
    """

    id: str
    is_stateful: bool
    state_store_names: frozenset[str]
    topic_partitions: frozenset[TaskTopicPartition]


@dataclass(frozen=True, slots=True)
class KafkaStreamsState:
    """Describes a client: a state directory, and the threads of the workers that share it.

    `task_lags` are in records, of each stateful task: how far the state in the directory is behind
    the task's changelogs. 0 for a task that runs there, and the size of the changelogs where there
    is no state of it. A task is missing while its brokers don't answer.
    """

    process_id: str
    num_processing_threads: int
    previous_tasks: Mapping[str, frozenset[str]]
    """By consumer client id (a thread's member of the group): the active and standby tasks that it
    has run since the last rebalance."""
    previous_active_tasks: frozenset[str] = frozenset()
    previous_standby_tasks: frozenset[str] = frozenset()
    """Warm-up tasks are among the standby tasks."""
    task_lags: Mapping[str, int] = field(default_factory=dict)
    client_tags: Mapping[str, str] = field(default_factory=dict)
    host_info: str = ""
    """The host:port where a worker of it answers queries (`application_server`); empty: none."""
    rack_id: str = ""
    """Its `client_rack`; empty if it has none."""

    @property
    def consumer_client_ids(self) -> list[str]:
        """Return the ids of the threads' members of the group, sorted."""
        return sorted(self.previous_tasks)

    def lag_for(self, task: str) -> int | None:
        """Return how many records a task's state lacks here; None while that is unknown."""
        return self.task_lags.get(task)

    def prev_tasks_by_lag(self, consumer_client_id: str) -> list[str]:
        """Return the stateful tasks that a thread has run, those with the least lag first.

        Kafka Streams' counterpart is prevTasksByLag.
        """
        tasks = self.previous_tasks.get(consumer_client_id, frozenset())
        known = [task for task in tasks if task in self.task_lags]
        return sorted(known, key=lambda task: (self.task_lags[task], split_task_id(task)))


@dataclass(frozen=True, slots=True)
class ApplicationState:
    """Describes the tasks of an application and its clients, for an assignor of its own."""

    all_tasks: Mapping[str, TaskInfo]
    """By task id."""
    kafka_streams_states: Mapping[str, KafkaStreamsState]
    """By process id."""
    assignment_configs: AssignmentConfigs


def split_task_id(task: str) -> tuple[SubtopologyNumber, PartitionNumber]:
    """Return the number of a task's sub-topology and that of its partition."""
    subtopology, _, partition = task.partition("_")
    return int(subtopology), int(partition)
