"""Tell which tasks of a store this worker is to run, and which partitions it covers.

A look-up that finds nothing proves nothing by itself: the task that has the key may be on another
worker, or have gone a moment ago. The key's partition can't tell, since an input may be written
with any partitioner (librdkafka's default is not Kafka's). So "there is no such key" is an answer
only if all tasks of the store were read here (docs/decisions/0049).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from streams.errors import OutcomeUnknown, StoreUnavailable, StreamsError
from streams.membership.protocol import AssignmentInfo
from streams.topology.build import Subtopology
from streams.topology.resolve import resolve_subtopology_of_task

R = TypeVar("R", covariant=True)

ThreadAssignment = tuple[str, AssignmentInfo | None]
"""The name of a thread and what the group has assigned to it; None while that is not known."""


class StoreLocations:
    """Compares the tasks of one sub-topology that were read with those that there are.

    `list_assignments` returns the assignment of each thread of this worker, the same object while
    it holds. `fetch_partition_counts` asks a broker; it is called once for each assignment.
    """

    def __init__(
        self,
        subtopology: Subtopology,
        list_assignments: Callable[[], Sequence[ThreadAssignment]],
        fetch_partition_counts: Callable[[], Mapping[str, int]],
    ) -> None:
        self._subtopology = subtopology
        self.list_assignments = list_assignments
        self._fetch_partition_counts = fetch_partition_counts
        self._counted: tuple[Sequence[ThreadAssignment], Mapping[str, int]] | None = None
        """The partitions of each input, with the assignments under which they were fetched."""
        self._known: tuple[Mapping[str, int], KnownLocations] | None = None
        """The locations with those partitions."""

    def find_transition(
        self,
        tasks_read: Collection[str],
        assignments: Sequence[ThreadAssignment],
        partitions: Collection[int] | None = None,
    ) -> str:
        """Return why the tasks that were read may not be all of this worker's; empty if they are.

        `assignments` are those before the tasks were read, `partitions` those that matter.
        """
        for thread, assigned in assignments:
            if assigned is None:
                return f"{thread} has no assignment of tasks yet, or has just lost it"
            for task in assigned.tasks:
                if partitions is not None and parse_partition(task) not in partitions:
                    continue
                if self._is_of_store(task) and task not in tasks_read:
                    return f"task {task} is assigned to {thread} and does not run yet"
        if not are_same_assignments(assignments, self.list_assignments()):
            return "tasks are moving"
        return ""

    def find_missing_partitions(self, tasks_read: Collection[str]) -> frozenset[int]:
        """Return the partitions of the store that are not among the tasks that were read.

        Raises StoreUnavailable if their number can't be learned now.
        """
        return frozenset(range(self.count_partitions())) - parse_partitions(tasks_read)

    def find_known_locations(self) -> KnownLocations | None:
        """Return these locations with the partitions that are known now, or None if none are.

        What is returned asks no broker, whatever becomes of the assignments.
        """
        if (counts := self._find_known_counts(self.list_assignments())) is None:
            return None
        known = self._known
        if known is None or known[0] is not counts:
            locations = KnownLocations(self._subtopology, self.list_assignments, counts)
            self._known = known = counts, locations
        return known[1]

    def _find_known_counts(
        self, assignments: Sequence[ThreadAssignment]
    ) -> Mapping[str, int] | None:
        """Return the partitions of each input, if they were fetched under these assignments."""
        if self._counted is None or not are_same_assignments(self._counted[0], assignments):
            return None
        return self._counted[1]

    def count_partitions(self) -> int:
        """Return how many partitions the store has: one for each task of its sub-topology.

        Raises StoreUnavailable if their number can't be learned now.
        """
        return max(self.count_input_partitions().values(), default=0)

    def count_input_partitions(self, *, anew: bool = False) -> Mapping[str, int]:
        """Return how many partitions each topic has that the store's sub-topology reads.

        A broker is asked once for each assignment, or `anew`. Raises StoreUnavailable.
        """
        assignments = self.list_assignments()
        counted = None if anew else self._find_known_counts(assignments)
        if counted is None:
            counted = self._fetch_inputs()
            self._counted = assignments, counted
        return counted

    def _fetch_inputs(self) -> Mapping[str, int]:
        """Return the partitions of each input as a broker tells them. Raises StoreUnavailable."""
        try:
            counts = self._fetch_partition_counts()
        except (OutcomeUnknown, StreamsError) as error:
            raise StoreUnavailable(
                "how many partitions a store has can't be told: those of "
                f"{sorted(self._subtopology.declared_sources)} are not known: {error}"
            ) from error
        topics = sorted(resolve_subtopology_of_task(self._subtopology, counts).sources)
        if missing := [topic for topic in topics if topic not in counts]:
            raise StoreUnavailable(
                f"how many partitions a store has can't be told: those of {missing} are not known"
            )
        return {topic: counts[topic] for topic in topics}

    def _is_of_store(self, task: str) -> bool:
        """Return whether a task is of the sub-topology that has the store."""
        return task.startswith(f"{self._subtopology.number}_")


class KnownLocations(StoreLocations):
    """Compares the tasks that were read with those of so many partitions, without a broker."""

    def __init__(
        self,
        subtopology: Subtopology,
        list_assignments: Callable[[], Sequence[ThreadAssignment]],
        counts: Mapping[str, int],
    ) -> None:
        super().__init__(subtopology, list_assignments, lambda: counts)
        self._counts = counts
        self._count = max(counts.values(), default=0)

    def count_partitions(self) -> int:
        """Return how many partitions the store has."""
        return self._count

    def count_input_partitions(self, *, anew: bool = False) -> Mapping[str, int]:
        """Return how many partitions each topic has that the store's sub-topology reads."""
        return self._counts


class StoreIterator(Iterator[R]):
    """Yields a store's entries in the tasks of this worker, and names their partitions.

    `partitions` are those that were read.
    """

    def __init__(
        self,
        items: Iterator[R],
        partitions: frozenset[int],
        find_missing: Callable[[], frozenset[int]],
    ) -> None:
        self._items = items
        self.partitions = partitions
        self._find_missing = find_missing

    @property
    def missing_partitions(self) -> frozenset[int]:
        """Return the partitions of the store that other workers have, or nobody at the moment.

        Raises StoreUnavailable if their number can't be learned now.
        """
        return self._find_missing()

    def __next__(self) -> R:
        return next(self._items)


def parse_partitions(tasks: Collection[str]) -> frozenset[int]:
    """Return the partition numbers of tasks, which their names end with."""
    return frozenset(map(parse_partition, tasks))


def parse_partition(task: str) -> int:
    """Return the partition number of a task, which its name ends with."""
    return int(task.rpartition("_")[2])


def are_same_assignments(one: Sequence[tuple[Any, ...]], other: Sequence[tuple[Any, ...]]) -> bool:
    """Return whether two lists have the very same assignments of the same threads.

    Their items begin with a thread's name and its assignment.
    """
    return len(one) == len(other) and all(
        a[0] == b[0] and a[1] is b[1] for a, b in zip(one, other, strict=True)
    )
