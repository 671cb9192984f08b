"""Read the stores of this worker's standby tasks, and say how far behind each is.

A standby's store has what its changelog had at a position: each key has a value that was committed.
Batches of a changelog don't end where commits do, so two keys may be of different commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import NamedTuple

from state.errors import StateError
from streams.errors import StoreUnavailable
from streams.graph.nodes import StoreSpec
from streams.queries.changelog_ends import ChangelogEnds, StandbyDistance
from streams.queries.committed_reads import read_between_writes
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_locations import parse_partition
from streams.queries.store_reads import StoreRow
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.tasks.store_opening import AnyStore, open_store
from streams.runtime.tasks.task import Task
from streams.runtime.tasks.task_state import TaskState

_ATTEMPTS_S = 0.1
"""The seconds after which a reader gives up that a standby's own batches overtake."""
_EVERY_PARTITION = range(2**31)


class StandbyAnswer(NamedTuple):
    """Holds the rows of one standby task, and how far behind it is."""

    rows: Sequence[StoreRow]
    partition: int
    distance: StandbyDistance


class StandbyReader:
    """Reads one store in those of the tasks of `list_tasks` that follow its changelog.

    `prefix` begins the names of the store's tasks; `now_ms` is wall-clock time.
    """

    def __init__(
        self,
        spec: StoreSpec,
        prefix: str,
        list_tasks: Callable[[], Iterable[Task]],
        ends: ChangelogEnds,
        now_ms: Callable[[], int],
    ) -> None:
        self._spec = spec
        self._prefix = prefix
        self._list_tasks = list_tasks
        self._ends = ends
        self._now_ms = now_ms

    def list_stores(self, partitions: Collection[int]) -> dict[int, tuple[Task, LoggedStore]]:
        """Return the task and the store of each of the partitions that are followed here."""
        found = {}
        for task in self._list_tasks():
            number = parse_partition(task.name)
            logged = task.stores.logged.get(self._spec.name)
            if (
                task.state is TaskState.STANDBY
                and task.name.startswith(self._prefix)
                and number in partitions
                and logged is not None
            ):
                found[number] = task, logged
        return found

    def list_partitions(self) -> Collection[int]:
        """Return the partitions of the store that are followed here."""
        return self.list_stores(_EVERY_PARTITION).keys()

    def read_standbys(
        self,
        read: Callable[[AnyStore], list[StoreRow]],
        partitions: Collection[int],
        bounds: StaleBounds,
        wait_s: float,
    ) -> list[StandbyAnswer]:
        """Return the rows of each partition that is followed here and within the bounds.

        The ends of changelogs are waited for at most `wait_s`. Raises StoreUnavailable for a
        partition that is too far behind, or that can't be read now.
        """
        followed = self.list_stores(_EVERY_PARTITION)
        wanted = [number for number in followed if number in partitions]
        if not wanted:
            return []
        if (sampling := self.request_sample()) is not None:
            wait([sampling], wait_s)
        return [self._read_store(number, *followed[number], read, bounds) for number in wanted]

    def measure_lags(self) -> Mapping[int, int | None]:
        """Return the lag of each partition that is followed here, as of the last sample."""
        return {
            number: self._measure_distance(task, logged).lag
            for number, (task, logged) in self.list_stores(_EVERY_PARTITION).items()
        }

    def request_sample(self) -> Future[None] | None:
        """Have the ends of all changelogs that are followed sampled, and return what ends with it.

        Of all: a read of other partitions that comes next finds this sample, and takes none. None
        if nothing is followed, or a sample was taken just now.
        """
        if not (followed := self.list_stores(_EVERY_PARTITION)):
            return None
        return self._ends.request_sample(
            {logged.changelog for _, logged in followed.values()},
            {partition for task, _ in followed.values() for partition in task.partitions},
        )

    def _read_store(
        self,
        number: int,
        task: Task,
        logged: LoggedStore,
        read: Callable[[AnyStore], list[StoreRow]],
        bounds: StaleBounds,
    ) -> StandbyAnswer:
        """Return the rows of one standby. Raises StoreUnavailable."""

        def read_with_distance() -> tuple[list[StoreRow], StandbyDistance]:
            assert logged.disk is not None
            distance = self._measure_distance(task, logged)
            return read(open_store(self._spec, logged.disk)), distance

        name = f"the standby of store {self._spec.name!r} in task {task.name}"
        try:
            rows, distance = read_between_writes(
                lambda: logged.standby_sequence,
                read_with_distance,
                _ATTEMPTS_S,
                f"{name} is being filled",
            )
        except StateError as error:
            raise StoreUnavailable(f"{name} can't be read now: {error}") from error
        if excess := bounds.describe_excess(distance.lag, distance.age_s):
            raise StoreUnavailable(f"{name} is {excess}")
        return StandbyAnswer(rows, number, distance)

    def _measure_distance(self, task: Task, logged: LoggedStore) -> StandbyDistance:
        """Return how far behind a store is, by the newest sample, or by what its task knows."""
        position = logged.changelog_position
        distance = self._ends.measure_distance(logged.changelog, position, task.partitions)
        if logged.is_source_topic:
            distance = distance._replace(inputs={**distance.inputs, logged.changelog: position})
        if logged.standby_full_ms:
            age_s = max(self._now_ms() - logged.standby_full_ms, 0) / 1000
            known_s = distance.age_s
            distance = distance._replace(age_s=age_s if known_s is None else min(age_s, known_s))
        return distance
