from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, assert_type

import pytest

from state.key_value import KeyValueStore
from state.session import SessionStore
from state.versioned import VersionedRecord, VersionedStore
from state.window import WindowStore
from streams import (
    App,
    ReadOnlyGlobalStore,
    ReadOnlySessionStore,
    ReadOnlyVersionedStore,
    ReadOnlyWindowStore,
    Store,
    TopologyTestDriver,
    Windowed,
    serdes,
    until_time_limit,
    windows,
)
from streams.errors import ConfigError, SerdeError, StoreUnavailable
from streams.queries import store_provider
from streams.queries.committed_reads import read_at_one_commit
from streams.queries.read_only_stores import ReadOnlyKeyValueStore
from streams.queries.store_provider import StateStoreProvider
from tests.unit.streams.runtime.world import World, build_counting_topology


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.load("x", "x", key="a", partition=0)
    world.load("x", key="b", partition=1)
    return world


def view_of(world: World) -> ReadOnlyKeyValueStore[str, int]:
    [spec] = build_counting_topology().subtopologies[0].stores
    return ReadOnlyKeyValueStore(StateStoreProvider(spec, lambda: list(world.loop.tasks.values())))


def test_a_view_reads_what_all_tasks_of_the_worker_have_committed(world: World) -> None:
    view = view_of(world)
    found: list[object] = []

    def look() -> bool:
        if not (world.consumed(0) and world.consumed(1)):
            return False
        found.append((view.get("a"), view.get("b"), view.get("c")))
        found.append(sorted(view.all()))
        found.append(list(view.range("b", "z")))
        found.append(view.approximate_count())
        return True

    world.run_until(look)
    assert found == [(2, 1, None), [("a", 2), ("b", 1)], [("b", 1)], 2]


def test_what_is_not_committed_is_not_seen(tmp_path: Path) -> None:
    seen = []

    def look(count: int) -> int:
        seen.append(view.get("k"))
        return count

    world = World(build_counting_topology(then=look), tmp_path)
    view = view_of(world)
    world.load("x")
    world.run_until(world.consumed)
    assert seen == [None]


def test_a_store_whose_task_is_not_here_says_so(world: World) -> None:
    view = view_of(world)
    with pytest.raises(StoreUnavailable, match="no task of it is on this worker"):
        view.get("a")
    taken: list[Iterator[object]] = []

    def take() -> bool:
        if world.consumed(0) and world.consumed(1):
            taken.append(view.all())
        return bool(taken)

    world.run_until(take)
    # What had not been written to disk is read on as it was at the first step.
    assert list(taken[0]) == [("a", 2), ("b", 1)]
    with pytest.raises(StoreUnavailable):
        view.get("a")


def test_a_view_can_not_write(world: World) -> None:
    with pytest.raises(AttributeError, match="put: a view of a key_value store can be") as raised:
        view_of(world).put("a", 1)
    assert "prefix_scan" in str(raised.value)
    assert "fetch" not in str(raised.value)
    with pytest.raises(AttributeError, match="find_sessions: a view of a key_value store"):
        view_of(world).find_sessions("a")


def test_a_view_shows_the_methods_of_its_kind_with_their_parameters(world: World) -> None:
    view = view_of(world)
    methods = {name for name in dir(view) if not name.startswith("_")}
    assert {"get", "range", "prefix_scan", "approximate_count"} <= methods
    assert not methods & {"put", "delete", "fetch", "find_sessions"}
    assert list(inspect.signature(view.range).parameters) == ["key_from", "key_to"]
    assert inspect.get_annotations(type(view).get) == {"key": "K", "return": "V | None"}
    assert str(inspect.getdoc(view.get)).startswith("Return the committed value of `key`")


def test_a_key_that_the_serde_refuses_is_no_reason_to_ask_again(world: World) -> None:
    view = view_of(world)
    refused: list[str] = []

    def look() -> bool:
        if not (world.consumed(0) and world.consumed(1)):
            return False
        reads: list[Callable[[Any], object]] = [view.get, view.range, view.prefix_scan]
        for read in reads:
            with pytest.raises(SerdeError) as raised:
                read(5)
            refused.append(str(raised.value))
        return True

    world.run_until(look)
    assert all("store 'c' can't take key 5: " in message for message in refused)
    assert all(message.endswith("the serde of its keys is 'string'") for message in refused)


def test_several_partitions_are_read_in_the_order_of_their_keys(world: World) -> None:
    for key, partition in (("d", 0), ("c", 1), ("f", 0), ("e", 1), ("ca", 0)):
        world.load("x", key=key, partition=partition)
    view = view_of(world)
    found: dict[str, list[str]] = {}

    def look() -> bool:
        if not (world.consumed(0) and world.consumed(1)):
            return False
        reads = {
            "all": view.all(),
            "range": view.range("b", "e"),
            "prefix": view.prefix_scan("c"),
            "reverse": view.reverse_range("b", "e"),
            "reverse all": view.reverse_all(),
        }
        found.update({name: [key for key, _ in rows] for name, rows in reads.items()})
        return True

    world.run_until(look)
    assert found == {
        "all": ["a", "b", "c", "ca", "d", "e", "f"],
        "range": ["b", "c", "ca", "d", "e"],
        "prefix": ["c", "ca"],
        "reverse": ["e", "d", "ca", "c", "b"],
        "reverse all": ["f", "e", "d", "ca", "c", "b", "a"],
    }


READS = {
    "get": ("k",),
    "entry": ("k",),
    "prefix_scan": ("k",),
    "fetch": ("k",),
    "backward_fetch": ("k",),
    "fetch_range": ("a", "z"),
    "backward_fetch_range": ("a", "z"),
    "fetch_session": ("k", 0, 0),
    "find_sessions": ("k", 0, 10),
    "backward_find_sessions": ("k", 0, 10),
    "fetch_versions": ("k", 0, 10),
    "backward_fetch_versions": ("k", 0, 10),
    "fetch_all": (0, 10),
    "backward_fetch_all": (0, 10),
}
"""The arguments of the methods that need some."""
WINDOW_READS = {
    "entry": ("k", 0),
    "fetch": ("k", 0, 10),
    "backward_fetch": ("k", 0, 10),
    "fetch_range": ("a", "z", 0, 10),
    "backward_fetch_range": ("a", "z", 0, 10),
}
SESSION_READS = {"entry": (Windowed("k", 0, 0),)}


@pytest.fixture(name="driver")
def _driver() -> Iterator[TopologyTestDriver]:
    """Yield a driver of an application with a store of each kind, after one record."""
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    grouped = stream.group_by_key()
    grouped.count(store="counts").suppress(until_time_limit(1_000), name="late")
    grouped.windowed_by(windows.tumbling(10)).count(store="windows")
    grouped.windowed_by(windows.session(10)).count(store="sessions")
    stream.to_table(store=Store.versioned("versions", history=1_000))
    app.global_table("rates", store="rates", key=serdes.string, value=serdes.string)
    with TopologyTestDriver(app, stores="memory") as driver:
        driver.topic("in").pipe("k", "v", timestamp_ms=0)
        yield driver


@pytest.mark.parametrize(
    ("name", "view_class", "store_class", "arguments", "found"),
    [
        ("counts", ReadOnlyKeyValueStore, KeyValueStore, READS, {1, ("k", 1)}),
        (
            "windows",
            ReadOnlyWindowStore,
            WindowStore,
            READS | WINDOW_READS,
            {1, (0, 1), (Windowed("k", 0, 10), 1)},
        ),
        (
            "sessions",
            ReadOnlySessionStore,
            SessionStore,
            READS | SESSION_READS,
            {1, (Windowed("k", 0, 0), 1)},
        ),
        (
            "versions",
            ReadOnlyVersionedStore,
            VersionedStore,
            READS,
            {VersionedRecord("v", 0, None)},
        ),
    ],
)
def test_each_method_of_a_view_reads_what_the_store_of_its_kind_reads(
    driver: TopologyTestDriver,
    name: str,
    view_class: type[Any],
    store_class: type[Any],
    arguments: dict[str, tuple[Any, ...]],
    found: set[object],
) -> None:
    view = driver.store(name)
    assert type(view) is view_class
    methods = [each for each in dir(view) if not each.startswith("_") and each != "kind"]
    read: set[object] = set()
    for method in methods:
        value = getattr(view, method)(*arguments.get(method, ()))
        entries = list(value) if isinstance(value, Iterator) else [value]
        assert len(entries) == 1, method
        read.add(entries[0].value if method == "entry" else entries[0])
        of_view = inspect.signature(getattr(view_class, method)).parameters
        assert list(of_view) == list(inspect.signature(getattr(store_class, method)).parameters)
    assert read == found


class RecordingProvider(StateStoreProvider[Any]):
    """Records which methods of a store are called, with which arguments."""

    def __init__(self) -> None:
        [spec] = build_counting_topology().subtopologies[0].stores
        super().__init__(spec, list)
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def _read_tasks(self, read: Callable[[Any], Any], assignments: object) -> dict[str, Any]:
        read(self)
        return {}

    def __getattr__(self, method: str) -> Callable[..., Iterator[object]]:
        def note_call(*arguments: Any) -> Iterator[object]:
            self.calls.append((method, arguments))
            return iter(())

        return note_call


@pytest.mark.parametrize(
    "view_class",
    [
        ReadOnlyKeyValueStore,
        ReadOnlyWindowStore,
        ReadOnlySessionStore,
        ReadOnlyVersionedStore,
    ],
)
def test_each_method_of_a_view_calls_that_of_its_store_with_its_arguments(
    view_class: type[Any],
) -> None:
    provider = RecordingProvider()
    view = view_class(provider)
    expected = []
    for method in (each for each in dir(view) if not each.startswith("_") and each != "kind"):
        parameters = inspect.signature(getattr(view, method)).parameters
        arguments = tuple(
            Windowed("k", 0, 1) if name == "session" else number
            for number, name in enumerate(parameters)
        )
        expected.append((method, arguments))
        getattr(view, method)(*arguments)
    assert provider.calls == expected
    assert len(expected) == len(set(expected))


def test_a_store_is_read_by_the_class_that_is_expected_or_refused(
    driver: TopologyTestDriver,
) -> None:
    assert driver.store("counts", ReadOnlyKeyValueStore).get("k") == 1
    assert driver.store("windows", ReadOnlyWindowStore).fetch("k", 0) == 1
    assert driver.store("rates", ReadOnlyGlobalStore).get("k") is None
    with pytest.raises(
        ConfigError, match="'windows' is read as ReadOnlyWindowStore, not as ReadOnlyKeyValueStore"
    ):
        driver.store("windows", ReadOnlyKeyValueStore)
    with pytest.raises(ConfigError, match="'rates' is read as ReadOnlyGlobalStore, not as"):
        driver.store("rates", ReadOnlyKeyValueStore)


def test_the_buffer_of_a_suppression_can_not_be_read(driver: TopologyTestDriver) -> None:
    [buffer] = [name for name in driver.stores if "late" in name]
    with pytest.raises(AttributeError, match="a view of a buffer store can be asked for nothing"):
        driver.store(buffer).get("k")


def test_results_have_the_types_that_are_named(driver: TopologyTestDriver) -> None:
    counts = driver.store("counts", ReadOnlyKeyValueStore[str, int])
    assert_type(counts.get("k"), int | None)
    assert [assert_type(row, tuple[str, int]) for row in counts.range()] == [("k", 1)]
    rates = driver.store("rates", ReadOnlyGlobalStore[str, str])
    assert assert_type(rates.get("k"), str | None) is None
    per_window = driver.store("windows", ReadOnlyWindowStore[str, int])
    assert assert_type(per_window.fetch("k", 0), int | None) == 1
    with pytest.raises(ConfigError, match="is read as ReadOnlyKeyValueStore, not as ReadOnlyWin"):
        driver.store("counts", ReadOnlyWindowStore[str, int])


def test_windows_that_a_commit_adds_when_a_read_begins_are_in_it(
    driver: TopologyTestDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the position of the answer would name records that are not in its windows."""
    view = driver.store("windows")
    later_ms = [50]

    def commit_and_read(task: Any, read: Callable[[], Any], attempts_s: float) -> Any:
        while later_ms:
            driver.topic("in").pipe("k", "v", timestamp_ms=later_ms.pop())
        return read_at_one_commit(task, read, attempts_s)

    monkeypatch.setattr(store_provider, "read_at_one_commit", commit_and_read)
    assert [window.start_ms for window, _ in view.fetch_all(0, 100)] == [50]  # the first is over
