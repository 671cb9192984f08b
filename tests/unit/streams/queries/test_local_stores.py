"""Test that a worker answers only while the group is known to have its members."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from streams.common.partitioning import partition_for_key
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, StoreNotLocal, StoreUnavailable
from streams.membership.protocol import AssignmentInfo, EndpointTasks
from streams.queries.position_bounds import (
    PositionNotReached,
    describe_absent_partitions,
    list_absent_partitions,
)
from streams.queries.read_only_stores import create_view
from streams.queries.store_calls import StoreCall
from streams.queries.store_reads import StoreRead
from streams.topology.store_queries import StoreQuery, list_results
from tests.unit.streams.queries.counted_stores import NOW_S, create_counted_stores
from tests.unit.streams.runtime.world import World, build_counting_topology

LOOK_UP = StoreRead(is_lookup=True, key="a")


@pytest.mark.parametrize(("age_s", "is_answered"), [(0.5, True), (45.0, True), (45.1, False)])
def test_a_member_of_which_the_group_has_not_heard_for_a_session_answers_nothing(
    tmp_path: Path, age_s: float, is_answered: bool
) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("x", "x", key="a")
    stores = create_counted_stores(world, heard_s=NOW_S - age_s)
    seen: list[object] = []

    def look() -> bool:
        if not world.consumed(0):
            return False
        if is_answered:
            answer = stores.read("c", LOOK_UP)
            seen.append(([row.value for row in answer.rows], round(answer.age_s, 3)))
        else:
            with pytest.raises(StoreUnavailable, match=r"has not answered .* for 45\.1 s"):
                stores.read("c", LOOK_UP)
        with pytest.raises(ConfigError, match="there is no store 'd'"):
            stores.read("d", LOOK_UP)
        return True

    world.run_until(look)
    assert seen == ([([2], age_s)] if is_answered else [])


def test_an_answer_is_as_old_as_a_commit_that_is_not_in_the_store_yet(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("x", key="a")
    stores = create_counted_stores(world, now_ms=lambda: 50_000)
    ages: list[float] = []

    def look() -> bool:
        if not world.consumed(0):
            return False
        ages.append(stores.read("c", LOOK_UP).age_s)
        world.loop.tasks["0_0"].commit_pending_since_ms = 49_500
        ages.append(stores.read("c", LOOK_UP).age_s)
        return True

    world.run_until(look)
    assert ages == [0.0, 0.5]


@pytest.mark.parametrize(
    ("assigned_tasks", "at_least", "error"),
    [
        (("0_0",), 1, None),
        (("0_0",), 2, PositionNotReached),
        (("0_0", "0_1"), 1, StoreUnavailable),  # a task is still to come
    ],
)
def test_a_function_is_called_only_where_its_answer_can_be_used(
    tmp_path: Path,
    assigned_tasks: tuple[str, ...],
    at_least: int,
    error: type[Exception] | None,
) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("x", key="a")
    stores = create_counted_stores(
        world,
        AssignmentInfo(assigned_tasks, ()),
        fetch_partition_counts=lambda: {"in": len(assigned_tasks)},
        monotonic_s=count(100).__next__,
    )
    seen: list[int] = []

    def count_keys(view: Any) -> int:
        seen.append(len(list(view.all())))
        return seen[-1]

    call = StoreCall(StoreQuery("keys", "c", count_keys, list_results), {})

    def look() -> bool:
        if not world.consumed(0):
            return False
        with nullcontext() if error is None else pytest.raises(error):
            stores.read("c", StoreRead(call=call), at_least={Partition("in", 0): at_least})
        return True

    world.run_until(look)
    assert seen == ([1] if error is None else [])


def test_a_key_that_another_worker_has_is_refused_with_its_address(tmp_path: Path) -> None:
    endpoints = {"a:1": EndpointTasks(("0_0",)), "b:2": EndpointTasks(("0_1",), ("0_0",))}
    stores = create_counted_stores(
        None, AssignmentInfo((), (), endpoints=endpoints), fetch_partition_counts=lambda: {"in": 3}
    )
    view = create_view(stores.create_provider("c"))
    addresses = {0: "a:1", 1: "b:2", 2: None}
    for key in map(str, range(20)):
        with pytest.raises(StoreNotLocal) as refused:
            view.get(key)
        assert refused.value.owner == addresses[partition_for_key(key.encode(), 3)]


@pytest.mark.parametrize(
    ("partition", "reason"),
    [
        (Partition("in", 2), r"in\[2\], and in has 2 partitions"),
        (Partition("in", 1), ""),  # a broker has more partitions than it had
    ],
)
def test_a_position_in_a_partition_that_there_is_not_is_refused_at_once(
    tmp_path: Path, partition: Partition, reason: str
) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("x", key="a")
    fetched = iter([{"in": 1}])
    stores = create_counted_stores(world, fetch_partition_counts=lambda: next(fetched, {"in": 2}))

    def look() -> bool:
        if not world.consumed(0):
            return False
        assert stores.count_partitions("c") == 1
        assert stores.find_known_locations("c", {partition: 1}) is None
        with pytest.raises(ConfigError, match=reason) if reason else nullcontext():
            stores.read("c", LOOK_UP, at_least={partition: 1}, partitions=(0,))
        return True

    world.run_until(look)


def test_a_topic_with_one_partition_is_named_in_the_singular() -> None:
    text = describe_absent_partitions("c", [Partition("in", 1)], {"in": 1})
    assert text.endswith("in[1], and in has 1 partition")


def test_a_position_in_a_topic_that_is_gone_names_it() -> None:
    """A pattern's topics come and go, and an answer may have named one."""
    position, counts = {Partition("in-a", 0): 3, Partition("in-b", 1): 3}, {"in-b": 2}
    absent = list_absent_partitions(position, counts)
    assert absent == [Partition("in-a", 0)]
    assert "in-a[0], and there is no topic in-a" in describe_absent_partitions("c", absent, counts)
