"""Choose which partition's record is processed next, where several partitions have one.

`TimestampOrder` is the order of Kafka Streams' TopologyTestDriver: the lowest timestamp of all
topics; of equal ones as its queue of queues has them, which is nearly first come, first served, and
repeatable. `RandomOrder` is what a cluster does, made repeatable by a seed: tasks go on in any
order; within a task the record with the lowest timestamp is next, where the task waits for it
(`max_task_idle_ms`). The timestamp is the one that a source extracts, where it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol

from streams.common.topic_partitions import Partition
from streams.operators.timestamp_extraction import StampedMessage, find_message_time_ms
from streams.testing.cluster import Message

NextRecords = Mapping[Partition, Message | StampedMessage]
StampHeads = Callable[[Mapping[Partition, Message]], NextRecords]
"""Gives each next record the time that its source extracts."""

_HeapEntry = tuple[int, int, Partition]
"""The timestamp in ms and the number of a next record, and its partition."""


class RecordOrder(Protocol):
    """Chooses the partition of each next record."""

    def choose_partition(self, next_records: NextRecords) -> Partition:
        """Return the partition whose record is next; `next_records` has at least one."""
        ...


class TimestampOrder:
    """Chooses the record with the lowest timestamp, as Kafka Streams' PartitionGroup does.

    It is one group over the topics of all sub-topologies: a PriorityQueue of Java by timestamp, in
    which equal ones lie where its sifting leaves them.
    """

    def __init__(self) -> None:
        self._heap: list[_HeapEntry] = []
        """The timestamp and the number of the next record of each partition that has any."""

    def choose_partition(self, next_records: NextRecords) -> Partition:
        known = [each for each in self._heap if _is_next_record(next_records, each)]
        if len(known) != len(self._heap):  # a rollback has moved positions
            self._heap = []
            for each in known:
                self._offer_entry(each)
        there = {partition for *_, partition in self._heap}
        fresh = [(m.number, p) for p, m in next_records.items() if p not in there]
        for number, partition in sorted(fresh):
            self._offer_entry((find_message_time_ms(next_records[partition]), number, partition))
        return self._poll_entry()[2]

    def _offer_entry(self, entry: _HeapEntry) -> None:
        """Insert an entry as Java's PriorityQueue.offer does."""
        heap = self._heap
        at = len(heap)
        heap.append(entry)
        while at > 0:
            above = (at - 1) // 2
            if entry[0] >= heap[above][0]:
                break
            heap[at] = heap[above]
            at = above
        heap[at] = entry

    def _poll_entry(self) -> _HeapEntry:
        """Remove and return the first entry as Java's PriorityQueue.poll does."""
        heap = self._heap
        first, entry = heap[0], heap.pop()
        count = len(heap)
        if not count:
            return first
        at = 0
        while at < count // 2:
            below = 2 * at + 1
            if below + 1 < count and heap[below][0] > heap[below + 1][0]:
                below += 1
            if entry[0] <= heap[below][0]:
                break
            heap[at] = heap[below]
            at = below
        heap[at] = entry
        return first


def _is_next_record(next_records: NextRecords, entry: _HeapEntry) -> bool:
    """Return whether an entry of the heap is still the next record of its partition."""
    head = next_records.get(entry[2])
    return head is not None and head.number == entry[1]


class RandomOrder:
    """Chooses tasks in an order drawn from a seed.

    `task_of` names the task that reads a partition; with `waits_for_earlier` a task reads its
    partitions by timestamp, else in any order too.
    """

    def __init__(
        self, random: Random, task_of: Callable[[Partition], str], *, waits_for_earlier: bool
    ) -> None:
        self._random = random
        self._task_of = task_of
        self._waits_for_earlier = waits_for_earlier

    def choose_partition(self, next_records: NextRecords) -> Partition:
        tasks: dict[str, list[Partition]] = {}
        for partition in sorted(next_records):
            tasks.setdefault(self._task_of(partition), []).append(partition)
        mine = tasks[self._random.choice(sorted(tasks))]
        if not self._waits_for_earlier:
            return self._random.choice(mine)
        return min(
            mine, key=lambda p: (find_message_time_ms(next_records[p]), next_records[p].number)
        )
