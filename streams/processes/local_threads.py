"""Describe the threads of a running worker: their tasks, their offsets, and how far stores are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streams.common.topic_partitions import Partition
from streams.runtime.tasks.task import Task
from streams.runtime.threads.stream_thread import StreamThread
from streams.runtime.threads.thread_state import ThreadState


@dataclass(frozen=True, slots=True)
class TaskMetadata:
    """Describes a task: its input partitions, and the offsets that it has committed of them.

    `lags` are how many records of each partition were not read yet about a second ago, as far as
    that is known. Kafka Streams' TaskMetadata has the ends instead.
    """

    task_id: str
    partitions: frozenset[Partition]
    committed_offsets: Mapping[Partition, int]
    lags: Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class ThreadMetadata:
    """Describes a thread and its tasks (Kafka Streams' ThreadMetadata)."""

    name: str
    state: ThreadState
    active_tasks: tuple[TaskMetadata, ...]
    standby_tasks: tuple[TaskMetadata, ...]


@dataclass(frozen=True, slots=True)
class StoreLag:
    """Says how far a copy of a store is behind its changelog (Kafka Streams' LagInfo).

    `end_offset` is None where it is not known yet, and so is `lag` then. Both offsets are None of a
    task that processes: its store is the latest.
    """

    position: int | None
    end_offset: int | None
    lag: int | None


_LATEST = StoreLag(None, None, 0)


def describe_thread(thread: StreamThread) -> ThreadMetadata:
    """Describe a thread with the tasks that it has now."""
    lags = thread.loop.measurements.lags
    return ThreadMetadata(
        thread.name,
        thread.state,
        tuple(_describe_task(task, lags) for task in thread.current_tasks()),
        tuple(_describe_task(task, {}) for task in thread.loop.standby_tasks),
    )


def _describe_task(task: Task, lags: Mapping[Partition, int]) -> TaskMetadata:
    """Describe a task, with those of `lags` that are of its partitions."""
    return TaskMetadata(
        task.name,
        frozenset(task.partitions),
        dict(task.committed_positions),
        {partition: lags[partition] for partition in task.partitions if partition in lags},
    )


def collect_store_lags(threads: Iterable[StreamThread]) -> dict[str, dict[int, StoreLag]]:
    """Return by store and partition how far the threads' copies are behind their changelogs."""
    found: dict[str, dict[int, StoreLag]] = {}
    for thread in threads:
        for task in thread.current_tasks():
            for store in task.store_specs:
                partition = int(task.name.rpartition("_")[2])
                found.setdefault(store, {})[partition] = _LATEST
        for followed in thread.loop.standby_progress:
            found.setdefault(followed.store, {})[followed.changelog.number] = StoreLag(
                followed.position, followed.end_offset, followed.lag
            )
        for restored in thread.loop.restore_progress:
            found.setdefault(restored.store, {})[restored.changelog.number] = StoreLag(
                restored.next_offset, restored.end_offset, restored.records_left
            )
    return found
