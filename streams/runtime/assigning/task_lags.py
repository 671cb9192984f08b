"""Find how far the state of each task in each state directory is behind its changelogs (KIP-441).

The group's leader fetches where the changelogs end, and takes from it what the members say of the
state in their directories (`SubscriptionInfo.offsets`). A store that is restored from an input
topic is up to date at the group's committed offset: what comes after it is not processed yet.
Source: StreamsPartitionAssignor.populateClientStatesMap, ClientState.computeTaskLags.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from streams.common.topic_partitions import CommittedOffsets, Partition
from streams.membership.protocol import RUNNING_OFFSET
from streams.runtime.clients.interfaces import AdminClient
from streams.topology.declared import DeclaredSubtopology

FetchCommittedOffsets = Callable[[Sequence[Partition]], CommittedOffsets]
"""Fetches the group's committed offsets, those before a transaction that is still open."""

_TIMEOUT_S = 5.0
"""The seconds that the leader waits for the changelogs' ends, while the group waits for it."""


class TaskChangelogs(NamedTuple):
    """Holds the changelog partitions that exist of each task with state, by where they end.

    `ending` are read to their ends, `committed` are input topics, read to the committed offset.
    """

    ending: Mapping[str, list[Partition]]
    committed: Mapping[str, list[Partition]]

    @property
    def stateful_tasks(self) -> frozenset[str]:
        """Return the tasks that have state in changelogs."""
        return frozenset(self.ending)


def list_task_changelogs(
    application_id: str,
    subtopologies: Mapping[int, DeclaredSubtopology],
    tasks: Iterable[str],
    partition_counts: Mapping[str, int],
) -> TaskChangelogs:
    """Return the changelogs of `tasks`, as the leader numbers them, that are in `partition_counts`.

    Tasks without a store that is restored from a topic have no state, and are left out.
    """
    ending: dict[str, list[Partition]] = {}
    committed: dict[str, list[Partition]] = {}
    for task in tasks:
        number, _, partition = task.partition("_")
        subtopology = subtopologies[int(number)]
        topics = subtopology.list_changelogs(application_id)
        if not topics:
            continue
        ending[task], committed[task] = [], []
        for topic in topics:
            if int(partition) < partition_counts.get(topic, 0):
                group = committed if topic in subtopology.sources else ending
                group[task].append(Partition(topic, int(partition)))
    return TaskChangelogs(ending, committed)


def fetch_end_offset_sums(
    changelogs: TaskChangelogs, admin: AdminClient, fetch_committed: FetchCommittedOffsets
) -> dict[str, int]:
    """Return for each task with state the sum of the offsets at which its state is up to date.

    A partition that does not exist yet, or for which nothing has been committed, counts 0. Left out
    is a task with a changelog whose leader does not answer: a broker was just lost, and its
    partitions get other leaders within seconds. Raises: OutcomeUnknown or ConnectionLost if nobody
    answers, StreamsError for a refusal.
    """
    ending = [p for partitions in changelogs.ending.values() for p in partitions]
    committed = [p for partitions in changelogs.committed.values() for p in partitions]
    ends = admin.fetch_available_latest_offsets(ending, _TIMEOUT_S) if ending else {}
    unknown = set(ending) - ends.keys()
    if committed:
        offsets = fetch_committed(committed).offsets
        ends = {**ends, **{partition: held.offset for partition, held in offsets.items()}}
    return {
        task: sum(ends.get(p, 0) for p in (*partitions, *changelogs.committed[task]))
        for task, partitions in changelogs.ending.items()
        if unknown.isdisjoint(partitions)
    }


def estimate_end_offset_sums(
    tasks: Iterable[str], offsets_of_members: Iterable[Mapping[str, int]]
) -> dict[str, int]:
    """Estimate where the state of tasks that nobody runs is up to date: at the furthest copy."""
    furthest = dict.fromkeys(tasks, 0)
    for offsets in offsets_of_members:
        for task in furthest:
            furthest[task] = max(furthest[task], offsets.get(task, 0))
    return furthest


def combine_offsets(offsets_of_members: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the offsets of one state directory, from those that its members say.

    `RUNNING_OFFSET` is above all others: the member that runs a task knows its state best.
    """
    combined: dict[str, int] = {}
    for offsets in offsets_of_members:
        for task, offset in offsets.items():
            known = combined.get(task, offset)
            is_running = RUNNING_OFFSET in (offset, known)
            combined[task] = RUNNING_OFFSET if is_running else max(offset, known)
    return combined


def compute_lags(
    offsets: Mapping[str, int], end_offset_sums: Mapping[str, int], running: Collection[str]
) -> dict[str, int]:
    """Return by how many records the state of each task in one directory lags.

    `running` are the tasks that run there in truth: no others are up to date by `RUNNING_OFFSET`,
    since a member may say so of a task that has moved while it was away. State that is beyond the
    end is of another changelog of that name, and is restored from its start.
    """
    lags: dict[str, int] = {}
    for task, end in end_offset_sums.items():
        offset = offsets.get(task, 0)
        if task in running:
            lags[task] = 0
        else:
            lags[task] = end - offset if 0 <= offset <= end else end
    return lags
