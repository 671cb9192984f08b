"""Test that a look-up never answers "no such key" while a task that may have it was not read."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from streams import App, Processor, Record, Store, serdes, windows
from streams.errors import OutcomeUnknown, StoreNotLocal, StoreUnavailable, StreamsError
from streams.membership.protocol import AssignmentInfo
from streams.queries.read_only_stores import ReadOnlyStore, create_view
from streams.queries.store_locations import StoreLocations, ThreadAssignment
from streams.queries.store_provider import StateStoreProvider
from streams.runtime.tasks.task import Task
from streams.topology.build import Topology
from tests.unit.streams.runtime.world import World, build_counting_topology

BOTH_TASKS = AssignmentInfo(("0_0", "0_1"), ())
NOTHING = AssignmentInfo((), ())


class Worker:
    """Reads the stores of a world as a worker whose threads have these assignments."""

    def __init__(self, world: World, topology: Topology | None = None) -> None:
        self.world = world
        self.topology = topology or build_counting_topology()
        self.assignments: list[ThreadAssignment] = [("thread 1", BOTH_TASKS)]
        self.counts: Mapping[str, int] = {"in": 2}
        self.owner: str | None = None
        self.fetches = 0
        self.failure: Exception | None = None

    def view(self, store: str = "c") -> Any:
        [sub] = self.topology.subtopologies
        [spec] = [each for each in sub.stores if each.name == store]
        locations = StoreLocations(sub, self.list_assignments, self.fetch_counts)
        return create_view(
            StateStoreProvider(spec, self.list_tasks, locations, lambda key, missing: self.owner)
        )

    def list_tasks(self) -> list[Task]:
        return list(self.world.loop.tasks.values())

    def list_assignments(self) -> Sequence[ThreadAssignment]:
        return list(self.assignments)

    def fetch_counts(self) -> Mapping[str, int]:
        self.fetches += 1
        if self.failure is not None:
            raise self.failure
        return self.counts

    def run(self, look: Callable[[], None]) -> None:
        """Call `look` once, when both partitions have been counted."""

        def look_once() -> bool:
            if not (self.world.consumed(0) and self.world.consumed(1)):
                return False
            look()
            return True

        self.world.run_until(look_once)


@pytest.fixture(name="worker")
def _worker(tmp_path: Path) -> Worker:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.load("x", "x", key="a", partition=0)
    world.load("x", key="b", partition=1)
    return Worker(world)


def test_no_such_key_is_an_answer_where_all_partitions_are(worker: Worker) -> None:
    view = worker.view()

    def look() -> None:
        assert (view.get("a"), view.get("b"), view.get("c"), view.entry("c")) == (2, 1, None, None)
        rows = view.all()
        assert rows.partitions == {0, 1}
        assert rows.missing_partitions == set()
        assert list(rows) == [("a", 2), ("b", 1)]

    worker.run(look)


def test_a_key_that_may_be_elsewhere_is_not_local(worker: Worker) -> None:
    worker.counts = {"in": 4}
    view = worker.view()

    def look() -> None:
        assert view.get("a") == 2
        for read in (view.get, view.entry):
            with pytest.raises(StoreNotLocal, match=r"'c' .* partitions 2, 3 are with") as raised:
                read("c")
            assert raised.value.partitions == {2, 3}
            assert raised.value.owner is None
            worker.owner = "b:2"
            with pytest.raises(StoreNotLocal, match=r"\(owner: b:2\)") as raised:
                read("c")
            assert raised.value.owner == "b:2"
            worker.owner = None
        for rows in (view.all(), view.range("a", "b"), view.reverse_all(), view.prefix_scan("a")):
            assert rows.partitions == {0, 1}
            assert rows.missing_partitions == {2, 3}
        assert view.approximate_count() == 2

    worker.run(look)


def test_a_thread_without_an_assignment_may_have_lost_the_key(worker: Worker) -> None:
    worker.assignments.append(("thread 2", None))
    view = worker.view()

    def look() -> None:
        assert view.get("a") == 2
        for read in (lambda: view.get("c"), view.all, view.approximate_count):
            with pytest.raises(StoreUnavailable, match="thread 2 has no assignment") as raised:
                read()
            assert not isinstance(raised.value, StoreNotLocal)

    worker.run(look)


def test_a_task_that_is_assigned_and_was_not_read_may_have_the_key(worker: Worker) -> None:
    worker.assignments.append(("thread 2", AssignmentInfo(("0_2", "1_7"), ())))
    view = worker.view()

    def look() -> None:
        assert view.get("a") == 2
        for read in (lambda: view.get("c"), view.all):
            with pytest.raises(StoreUnavailable, match="task 0_2 is assigned to thread 2 and does"):
                read()

    worker.run(look)


def test_tasks_of_other_stores_do_not_matter(worker: Worker) -> None:
    worker.assignments.append(("thread 2", AssignmentInfo(("1_2", "10_0"), ())))
    view = worker.view()
    worker.run(lambda: _assert_none(view.get("c")))


def _assert_none(value: object) -> None:
    assert value is None


def test_an_assignment_that_changes_while_tasks_are_read_proves_nothing(worker: Worker) -> None:
    view = worker.view()

    def change() -> list[Task]:
        worker.assignments[0] = ("thread 1", AssignmentInfo(("0_0", "0_1"), ()))
        return list(worker.world.loop.tasks.values())

    worker.list_tasks = change  # type: ignore[method-assign]
    view = worker.view()

    def look() -> None:
        assert view.get("a") == 2
        with pytest.raises(StoreUnavailable, match="tasks are moving"):
            view.get("c")

    worker.run(look)


def test_a_worker_without_tasks_of_the_store_says_that_others_have_them(worker: Worker) -> None:
    worker.assignments = [("thread 1", NOTHING)]
    view = worker.view()
    message = "has no partition on this worker, so nothing was read: partitions 0, 1 are with other"
    for read in (lambda: view.get("a"), view.all, lambda: view.range("a", "c")):
        with pytest.raises(StoreNotLocal, match=message) as refused:
            read()
        assert "no such key" not in str(refused.value)
    worker.assignments = [("thread 1", None)]
    with pytest.raises(StoreUnavailable, match="thread 1 has no assignment"):
        view.get("a")


def test_a_task_that_is_rolled_back_can_not_be_read_nor_one_that_is_gone(worker: Worker) -> None:
    view = worker.view()

    def look() -> None:
        task = worker.world.loop.tasks["0_0"]
        task.roll_back()
        with pytest.raises(StoreUnavailable, match="task 0_0 is CREATED"):
            view.get("a")

    worker.run(look)
    with pytest.raises(StoreUnavailable, match="task 0_0 is assigned to thread 1 and does not run"):
        view.get("a")


def test_partitions_are_counted_once_for_each_assignment(worker: Worker) -> None:
    view = worker.view()

    def look() -> None:
        assert [view.get("c"), view.get("d")] == [None, None]
        assert worker.fetches == 1
        worker.counts = {"in": 3}
        worker.assignments = [("thread 1", AssignmentInfo(("0_0", "0_1"), ()))]
        with pytest.raises(StoreNotLocal):
            view.get("c")
        assert worker.fetches == 2

    worker.run(look)


@pytest.mark.parametrize("failure", [OutcomeUnknown("no answer"), StreamsError("refused")])
def test_where_partitions_can_not_be_counted_nothing_is_claimed(
    worker: Worker, failure: Exception
) -> None:
    worker.failure = failure
    view = worker.view()

    def look() -> None:
        assert view.get("a") == 2
        assert dict(view.all()) == {"a": 2, "b": 1}
        with pytest.raises(StoreUnavailable, match=rf"\['in'\] are not known: {failure}"):
            view.get("c")
        worker.failure, worker.counts = None, {}
        with pytest.raises(StoreUnavailable, match=r"\['in'\] are not known"):
            view.get("c")

    worker.run(look)


class Versions(Processor[str, str, str, str]):
    stores = (Store.versioned("versions", history=10, key=serdes.string, value=serdes.string),)

    def process(self, record: Record[str, str]) -> None:
        self.context.store("versions").put(record.key, record.value, record.timestamp_ms)


def build_all_kinds() -> Topology:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    grouped = stream.group_by_key()
    grouped.windowed_by(windows.tumbling(1_000)).count(store="windows")
    grouped.windowed_by(windows.session(1_000)).count(store="sessions")
    stream.process(Versions)
    return app.topology()


def reads_of_a_key(worker: Worker, key: str) -> Iterator[Callable[[], Any]]:
    of_windows, of_sessions = worker.view("windows"), worker.view("sessions")
    yield lambda: of_windows.fetch(key, 0)
    yield lambda: of_windows.fetch(key, 0, 10)
    yield lambda: of_windows.backward_fetch(key, 0, 10)
    yield lambda: of_sessions.fetch(key)
    yield lambda: of_sessions.backward_fetch(key)
    yield lambda: of_sessions.find_sessions(key, 0, 10)
    yield lambda: of_sessions.backward_find_sessions(key, 0, 10)
    yield lambda: worker.view("versions").get(key)


def test_windows_sessions_and_versions_of_a_key_follow_the_same_rule(tmp_path: Path) -> None:
    topology = build_all_kinds()
    changelogs = {f"a-{name}-changelog": 2 for name in ("windows", "sessions", "versions")}
    world = World(topology, tmp_path, partitions=2, topics=changelogs)
    world.load("x", key="a", partition=0)
    world.load("x", key="b", partition=1)
    worker = Worker(world, topology)

    def look() -> None:
        for read in reads_of_a_key(worker, "c"):
            assert not list(read() or ())
        worker.counts = {"in": 3}
        for read in reads_of_a_key(worker, "a"):
            found = read()
            assert not isinstance(found, Iterator) or len(list(found)) == 1
            assert found is not None
        for read in reads_of_a_key(worker, "c"):
            with pytest.raises(StoreNotLocal):
                read()
        of_windows: ReadOnlyStore[Any] = worker.view("windows")
        assert of_windows.fetch_all(0, 10).missing_partitions == {2}
        assert of_windows.all().partitions == {0, 1}

    worker.run(look)


def test_the_error_survives_the_way_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(StoreNotLocal("c", frozenset({1, 2}), "here:80")))
    assert isinstance(error, StoreNotLocal)
    assert (error.store, error.partitions, error.owner) == ("c", frozenset({1, 2}), "here:80")
    assert "partitions 1, 2" in str(error)
    none_here = StoreNotLocal("c", frozenset({1}), has_partitions=False)
    assert str(pickle.loads(pickle.dumps(none_here))) == str(none_here)
