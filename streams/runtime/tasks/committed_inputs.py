"""Compare the inputs of tasks with what the group has committed for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.runtime.offsets.offset_metadata import OffsetMetadata, decode_metadata
from streams.runtime.tasks.task import Task


def find_missing_offsets(
    tasks: Collection[Task], known: Mapping[Partition, OffsetAndMetadata]
) -> dict[Partition, list[OffsetMetadata]]:
    """Return the inputs without a committed offset, with the metadata of their task's others."""
    return {
        partition: [decode_metadata(known[p].metadata) for p in task.partitions if p in known]
        for task in tasks
        for partition in task.partitions
        if partition not in known
    }


def is_overtaken(task: Task, committed: CommittedOffsets) -> bool:
    """Return whether a task's offsets are further than the task knows, or pending."""
    if not set(task.partitions).isdisjoint(committed.pending):
        return True
    return any(
        held.offset > task.committed_positions.get(partition, -1)
        or (decode_metadata(held.metadata).commit_number or 0) > task.commit_number
        for partition in task.partitions
        if (held := committed.offsets.get(partition)) is not None
    )
