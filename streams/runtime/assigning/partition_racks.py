"""Find the racks of what tasks read, for assignment by racks (KIP-925).

The leader asks the brokers in each rebalance in which racks the replicas of each partition are, if
`rack_aware_assignment_strategy` or an assignor of the application may want to know. Source:
RackUtils.annotateTopicPartitionsWithRackInfo.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from coordinator.assignors.tasks import TaskRacks
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.runtime.assigning.task_lags import TaskChangelogs
from streams.runtime.clients.interfaces import AdminClient

log = logging.getLogger(__name__)

PartitionRacks = Mapping[Partition, frozenset[str]]
"""The racks of the replicas of each partition; none where a broker has no rack."""


def fetch_partition_racks(
    admin: AdminClient,
    sources: Mapping[str, Collection[Partition]],
    changelogs: TaskChangelogs,
) -> PartitionRacks:
    """Return the racks of all partitions that tasks read and restore; none if nobody answers."""
    by_task = (*sources.values(), *changelogs.ending.values(), *changelogs.committed.values())
    topics = sorted({partition.topic for partitions in by_task for partition in partitions})
    try:
        return admin.fetch_replica_racks(topics)
    except (OutcomeUnknown, StreamsError) as error:
        log.info("tasks are assigned without knowing the racks of partitions: %s", error)
        return {}


def find_task_racks(
    sources: Mapping[str, Collection[Partition]],
    changelogs: TaskChangelogs,
    racks: PartitionRacks,
) -> dict[str, TaskRacks]:
    """Return the racks of what each task reads, and of its changelogs."""

    def list_racks(partitions: Collection[Partition]) -> list[frozenset[str]]:
        return [racks.get(partition, frozenset()) for partition in partitions]

    return {
        task: TaskRacks(
            list_racks(read),
            list_racks([*changelogs.ending.get(task, ()), *changelogs.committed.get(task, ())]),
        )
        for task, read in sources.items()
    }
