"""Answer reads of the stores of this worker, with the position, the partitions and the age.

What is read is what the tasks have committed. It is the newest that there is as long as the group
still has this member, so an answer says how long ago that was known last (`age_s`); a member that
the group may have given up answers nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import wait
from functools import cached_property, partial
from typing import Any

from state.errors import StateError
from streams.common.partitioning import partition_for_key
from streams.errors import ConfigError, SerdeError, StoreNotLocal, StoreUnavailable
from streams.graph.nodes import StoreSpec
from streams.queries.answer_ages import (
    ThreadAssignmentTimes,
    measure_membership_age_s,
    measure_pending_s,
)
from streams.queries.committed_reads import READ_ATTEMPTS_S, Position
from streams.queries.position_bounds import (
    check_position_topics,
    describe_absent_partitions,
    list_absent_partitions,
    require_position_reached,
)
from streams.queries.read_only_stores import create_view
from streams.queries.row_reads import RowReads
from streams.queries.stale_bounds import StaleBounds
from streams.queries.standby_reads import StandbyReader
from streams.queries.store_answers import StoreAnswer, merge_answers
from streams.queries.store_calls import StoreCall
from streams.queries.store_hosts import StoreHost, StoreHosts
from streams.queries.store_locations import StoreLocations, parse_partition, parse_partitions
from streams.queries.store_provider import StateStoreProvider
from streams.queries.store_reads import (
    StoreRead,
    StoreRow,
    check_read_fits_store,
    merge_rows,
    read_rows,
)
from streams.runtime.tasks.task import Task
from streams.topology.build import Subtopology, Topology
from streams.topology.store_queries import StoreQuery

_POSITION_POLL_S = 0.005


class LocalStores:
    """Reads the stores of `topology` in the tasks of this worker.

    `fetch_partition_counts` asks a broker. A member of which the group has known nothing for
    `session_timeout_s` answers no more: others may have its tasks. `create_standby_reader` is
    called once for each store, with its declaration and the prefix of its tasks.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        list_tasks: Callable[[], Iterable[Task]],
        list_assignments: Callable[[], Sequence[ThreadAssignmentTimes]],
        fetch_partition_counts: Callable[[], Mapping[str, int]],
        monotonic_s: Callable[[], float],
        now_ms: Callable[[], int],
        session_timeout_s: float,
        create_standby_reader: Callable[[StoreSpec, str], StandbyReader] | None = None,
    ) -> None:
        self._create_standby_reader = create_standby_reader
        self._standby_readers: dict[str, StandbyReader] = {}
        self._topology = topology
        self._list_tasks = list_tasks
        self._list_assignments = list_assignments
        self._fetch_partition_counts = fetch_partition_counts
        self._monotonic_s = monotonic_s
        self._now_ms = now_ms
        self._session_timeout_s = session_timeout_s
        self._locations: dict[str, StoreLocations] = {}
        self._row_reads = RowReads(
            list_tasks, list_assignments, monotonic_s, now_ms, session_timeout_s
        )

    @cached_property
    def _stores_by_name(self) -> dict[str, tuple[StoreSpec, Subtopology]]:
        """Hold the stores of tasks by name."""
        subs = self._topology.subtopologies
        return {spec.name: (spec, sub) for sub in subs for spec in sub.stores}

    @property
    def store_names(self) -> list[str]:
        """Return the names of the stores of tasks, sorted."""
        return sorted(self._stores_by_name)

    def find_store(self, name: str) -> tuple[StoreSpec, Subtopology]:
        """Return a store's declaration and its sub-topology. Raises ConfigError."""
        if found := self._stores_by_name.get(name):
            return found
        copies = {table.store.name for table in self._topology.global_tables}
        raise ConfigError(
            f"there is no store {name!r}; there are {sorted({*self.store_names, *copies})}"
        )

    @property
    def queries(self) -> Sequence[StoreQuery]:
        """Return the queries that are registered by name."""
        return self._topology.queries

    def find_query(self, name: str) -> StoreQuery:
        """Return the query that is registered by a name. Raises ConfigError."""
        if found := next((each for each in self.queries if each.name == name), None):
            return found
        names = sorted(each.name for each in self.queries)
        raise ConfigError(f"there is no query {name!r}; there are {names}")

    def create_provider(
        self, name: str, locations: StoreLocations | None = None
    ) -> StateStoreProvider[Any]:
        """Create the provider of a store in all tasks of this worker. Raises ConfigError."""
        spec, _ = self.find_store(name)
        locations = locations or self._find_locations(name)
        return StateStoreProvider(
            spec, self._list_tasks, locations, partial(self._find_owner, name)
        )

    def _find_owner(self, name: str, key: Any, partitions: frozenset[int]) -> str | None:
        """Return the address of the worker that has a key in one of `partitions`, if it is known.

        It is the one that has the key by Kafka's default partitioner, and answers queries.
        """
        try:
            partition = self.find_partition(name, key)
        except (StoreUnavailable, SerdeError, StateError):
            return None
        addresses = (
            each.address
            for each in self.list_hosts(name)
            if each.partition == partition and each.role == "active" and partition in partitions
        )
        return next(addresses, None)

    def find_known_locations(self, name: str, position: Position) -> StoreLocations | None:
        """Return what knows a store's partitions without a broker, for a read that may not wait.

        None if a broker has to be asked: they are not known, or don't have those of `position`.
        """
        known = self._find_locations(name).find_known_locations()
        return (
            None
            if known is None or list_absent_partitions(position, known.count_input_partitions())
            else known
        )

    def count_partitions(self, name: str, locations: StoreLocations | None = None) -> int:
        """Return how many partitions a store has. Raises ConfigError, StoreUnavailable."""
        return (locations or self._find_locations(name)).count_partitions()

    def list_hosts(self, name: str) -> list[StoreHost]:
        """Return the workers that have each partition of a store. Raises ConfigError."""
        return self._create_hosts(name).list_hosts()

    def find_active_endpoint(self, name: str, partition: int) -> str | None:
        """Return the address of the worker that has a partition of a store, if it is known."""
        return self._create_hosts(name).find_active_endpoint(partition)

    def _create_hosts(self, name: str) -> StoreHosts:
        """Create the list of the workers that have a store. Raises ConfigError."""
        return StoreHosts(
            self.find_store(name)[1],
            lambda: [(each.assigned_at_s, each.assignment) for each in self._list_assignments()],
            self._monotonic_s,
        )

    def list_own_partitions(self, name: str, *, with_standbys: bool) -> set[int]:
        """Return the partitions of a store that tasks have here. Raises ConfigError."""
        _, sub = self.find_store(name)
        prefix = f"{sub.number}_"
        own = parse_partitions([t.name for t in self._list_tasks() if t.name.startswith(prefix)])
        reader = self._find_standby_reader(name) if with_standbys else None
        return {*own, *(reader.list_partitions() if reader else ())}

    def measure_standby_lags(self, name: str) -> Mapping[int, int | None]:
        """Return the last lag of each partition of a store that a standby task follows here."""
        reader = self._find_standby_reader(name)
        return {} if reader is None else reader.measure_lags()

    def sample_standby_lags(self, names: Iterable[str], wait_s: float) -> None:
        """Have the lags of stores sampled, and wait once for all of them, for at most `wait_s`."""
        readers = [self._find_standby_reader(name) for name in names]
        samplings = [reader.request_sample() for reader in readers if reader is not None]
        wait([each for each in samplings if each is not None], wait_s)

    def find_partition(self, name: str, key: Any, locations: StoreLocations | None = None) -> int:
        """Return the partition that Kafka's default partitioner chooses for a key.

        Raises ConfigError, StoreUnavailable; what the serde raises for a key that it refuses.
        """
        spec, _ = self.find_store(name)
        return partition_for_key(spec.key.serialize(key), self.count_partitions(name, locations))

    def read_row(self, name: str, read: StoreRead, partition: int) -> StoreAnswer | None:
        """Return what a read that has one row, and fits the store, finds in a partition.

        None if the partition is not here, or the answer can't be known at once. Raises ConfigError.
        """
        spec, sub = self.find_store(name)
        return self._row_reads.read_row(sub.number, partition, spec, read)

    def read(
        self,
        name: str,
        read: StoreRead,
        *,
        at_least: Position | None = None,
        wait_s: float = 0.0,
        ends_wait_s: float = 0.0,
        attempts_s: float = READ_ATTEMPTS_S,
        partitions: Collection[int] | None = None,
        stale_ok: StaleBounds | None = None,
        locations: StoreLocations | None = None,
    ) -> StoreAnswer:
        """Return what the tasks of this worker have committed; nothing if it has no partition.

        `partitions` are those to read, None all; `locations`, if given, tell how many there are.
        With `stale_ok` those that no active task has here are read of standby tasks. Waits up to
        `wait_s` until the store has taken in `at_least`, and is within the bounds; for what brokers
        say of these up to `ends_wait_s` in any case, and for commits that overtake the read up to
        `attempts_s`. Raises ConfigError for a read that the store can't answer, StoreUnavailable
        for one that it can't answer now, SerdeError.
        """
        spec, sub = self.find_store(name)
        check_read_fits_store(spec, read)
        if at_least:
            check_position_topics(name, sub, at_least)
            self._check_position_partitions(name, at_least, locations)
        provider = self.create_provider(name, locations)
        if (wanted := partitions) is None:
            wanted = range(self.count_partitions(name, locations))
        give_up_at_s = self._monotonic_s() + wait_s
        while True:
            left_s = max(give_up_at_s - self._monotonic_s(), 0.0)
            try:
                if read.call is not None:  # how long its function takes is not known
                    self.check_positions(name, at_least or {}, wanted)
                answer = self._read_active(spec, provider, read, wanted, stale_ok, attempts_s)
                if stale_ok is not None and (rest := {*wanted} - answer.partitions):
                    waits_s = max(left_s, ends_wait_s)
                    answer = self._add_standby_rows(spec, read, answer, rest, stale_ok, waits_s)
                require_position_reached(name, answer.position, answer.partitions, at_least or {})
                return answer
            except StoreUnavailable:
                # Only what comes with time, and without a rebalance, is waited for.
                if not (at_least or stale_ok) or self._monotonic_s() >= give_up_at_s:
                    raise
            time.sleep(_POSITION_POLL_S)

    def _check_position_partitions(
        self, name: str, position: Position, locations: StoreLocations | None
    ) -> None:
        """Raise ConfigError for a position in partitions that there are not; StoreUnavailable."""
        locations = locations or self._find_locations(name)
        if list_absent_partitions(position, locations.count_input_partitions()):
            counts = locations.count_input_partitions(anew=True)  # there may be more of them since
            if absent := list_absent_partitions(position, counts):
                raise ConfigError(describe_absent_partitions(name, absent, counts))

    def check_positions(
        self, name: str, at_least: Position, partitions: Collection[int] | None
    ) -> None:
        """Raise PositionNotReached if a task of `partitions` here has not taken in `at_least`."""
        _, sub = self.find_store(name)
        for task in self._list_tasks():
            number = parse_partition(task.name)
            is_wanted = partitions is None or number in partitions
            if task.name.startswith(f"{sub.number}_") and is_wanted:
                require_position_reached(name, task.committed_positions, {number}, at_least)

    def _read_active(
        self,
        spec: StoreSpec,
        provider: StateStoreProvider[Any],
        read: StoreRead,
        wanted: Collection[int],
        stale_ok: StaleBounds | None,
        attempts_s: float,
    ) -> StoreAnswer:
        """Return what the tasks that run here have committed now, of the wanted partitions."""
        pending_ms = [task.commit_pending_since_ms for task in self._list_tasks()]
        try:
            if read.call is None:
                by_task = provider.read_with_positions(
                    lambda s: read_rows(spec, s, read), wanted, attempts_s
                )
            else:
                by_task = provider.call_tasks(partial(_call_task, read.call), wanted)
        except StoreUnavailable as error:
            is_elsewhere = isinstance(error, StoreNotLocal) and not error.has_partitions
            if stale_ok is None and not is_elsewhere:
                raise
            by_task = {}
        rows, has_more = merge_rows(spec, [rows for rows, _ in by_task.values()], read)
        position = {p: offset for _, each in by_task.values() for p, offset in each.items()}
        return StoreAnswer(
            rows,
            has_more,
            position,
            parse_partitions(by_task),
            max(
                self._measure_membership_age_s() if by_task else 0.0,
                measure_pending_s(pending_ms, self._now_ms()),
            ),
        )

    def _measure_membership_age_s(self) -> float:
        """Return the seconds since when the group may have given up this worker.

        Raises StoreUnavailable.
        """
        now_s, timeout_s = self._monotonic_s(), self._session_timeout_s
        return measure_membership_age_s(self._list_assignments(), now_s, timeout_s)

    def _add_standby_rows(
        self,
        spec: StoreSpec,
        read: StoreRead,
        answer: StoreAnswer,
        wanted: Collection[int],
        bounds: StaleBounds,
        wait_s: float,
    ) -> StoreAnswer:
        """Return an answer of active tasks with the rows of the standbys of other partitions."""
        reader = self._find_standby_reader(spec.name)
        if reader is None:
            return answer
        found = reader.read_standbys(
            lambda store: read_rows(spec, store, read), wanted, bounds, wait_s
        )
        return merge_answers(
            spec,
            [
                answer,
                *(
                    StoreAnswer(
                        each.rows,
                        len(each.rows) > read.limit,
                        each.distance.inputs,
                        frozenset((each.partition,)),
                        each.distance.age_s or 0.0,
                        each.distance.lag,
                    )
                    for each in found
                ),
            ],
            read,
        )

    def _find_standby_reader(self, name: str) -> StandbyReader | None:
        """Return what reads a store in standby tasks, one for all reads; None for none."""
        if self._create_standby_reader is None:
            return None
        if (found := self._standby_readers.get(name)) is None:
            spec, sub = self.find_store(name)
            found = self._create_standby_reader(spec, f"{sub.number}_")
            found = self._standby_readers.setdefault(name, found)
        return found

    def _find_locations(self, name: str) -> StoreLocations:
        """Return what knows the partitions of a store, one and the same for all reads of it."""
        if (found := self._locations.get(name)) is None:
            _, sub = self.find_store(name)
            found = self._locations[name] = StoreLocations(
                sub,
                lambda: [(each.name, each.assignment) for each in self._list_assignments()],
                self._fetch_partition_counts,
            )
        return found


def _call_task(call: StoreCall, task: str, provider: StateStoreProvider[Any]) -> list[StoreRow]:
    """Return the result of a registered query for one task, as a row. Raises QueryFailed."""
    return [StoreRow(parse_partition(task), call.call_function(create_view(provider)))]
