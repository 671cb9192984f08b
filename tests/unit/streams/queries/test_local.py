from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from state.key_value import KeyValueStore
from streams.errors import SerdeError, StoreUnavailable
from streams.queries.local import LocalStore
from tests.unit.streams.runtime.world import World, build_counting_topology


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.load("x", "x", key="a", partition=0)
    world.load("x", key="b", partition=1)
    return world


def view_of(world: World) -> LocalStore:
    [spec] = build_counting_topology().subtopologies[0].stores
    return LocalStore(spec, lambda: list(world.loop.tasks.values()))


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
        if world.consumed(0):
            taken.append(view.all())
        return bool(taken)

    world.run_until(take)
    with pytest.raises(StoreUnavailable, match="is closed"):
        list(taken[0])
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
    assert inspect.getdoc(view.get) == inspect.getdoc(KeyValueStore.get)


def test_a_key_that_the_serde_refuses_is_no_reason_to_ask_again(world: World) -> None:
    view = view_of(world)
    refused: list[str] = []

    def look() -> bool:
        if not (world.consumed(0) and world.consumed(1)):
            return False
        for read in (view.get, view.range, view.prefix_scan):
            with pytest.raises(SerdeError) as raised:
                read(5)
            refused.append(str(raised.value))
        return True

    world.run_until(look)
    assert all("store 'c' can't take key 5: " in message for message in refused)
    assert all(message.endswith("the serde of its keys is 'string'") for message in refused)
