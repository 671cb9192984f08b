"""Start to restore a task from what the group has committed for its inputs."""

from __future__ import annotations

from collections.abc import Mapping

from streams.common.topic_partitions import NO_TIME, OffsetAndMetadata, Partition
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.runtime.tasks.offset_proof import OffsetProof
from streams.runtime.tasks.task import Task


def start_restoring_task(
    task: Task,
    committed: Mapping[Partition, OffsetAndMetadata],
    positions: Mapping[Partition, int],
    proof: OffsetProof,
    *,
    must_commit_positions: bool,
) -> None:
    """Start restoring a task at the `positions` of its inputs, with all that was committed.

    The task knows its first starts.

    `committed` are the offsets of its inputs that have one, `proof` says what they account for.
    With `must_commit_positions` the positions are committed before a record is read.
    """
    metadata = {p: decode_metadata(held.metadata) for p, held in committed.items()}
    times = {p: each.partition_time_ms for p, each in metadata.items()}
    steps = {
        step: max((each.time_of_step(step) for each in metadata.values()), default=NO_TIME)
        for step in task.timed_steps
    }
    for logged in task.stores.logged.values():
        if logged.is_source_topic:
            held = committed.get(logged.changelog)
            logged.committed_source_offset = 0 if held is None else held.offset
            first = task.first_starts.get(logged.changelog)
            logged.first_source_offset = 0 if first is None else first.offset
    required = task.stores.find_committed_positions_and_note_ids(committed)
    task.stores.note_committed_expiry(committed)
    task.start_restoring(
        {p: positions[p] for p in task.partitions},
        required,
        times,
        steps,
        max((each.commit_number or 0 for each in metadata.values()), default=0),
        proof,
        committed_positions={p: held.offset for p, held in committed.items()},
        must_commit_positions=must_commit_positions,
    )
    task.uncommitted_inputs = [p for p in task.partitions if p not in committed]
