"""Test which look-ups are answered on the thread that asks, and that none of them waits there."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streams import App, serdes, windows
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, OutcomeUnknown
from streams.membership.protocol import AssignmentInfo
from streams.queries.answer_ages import ThreadAssignmentTimes
from streams.queries.local_stores import LocalStores
from streams.queries.position_bounds import PositionNotReached
from streams.queries.prompt_reads import PromptReads
from streams.queries.read_threads import ReadThreads
from streams.queries.request_terms import RequestTerms
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_calls import StoreCall
from streams.queries.store_reads import StoreRead
from streams.runtime.tasks.task_state import TaskState
from streams.runtime.threads.query_measurements import QueryMeasurements
from streams.topology.store_queries import StoreQuery, list_results
from tests.processes import wait_until
from tests.unit.streams.queries.counted_stores import create_counted_stores
from tests.unit.streams.runtime.world import World, build_counting_topology

LOOK_UP = StoreRead(is_lookup=True, key="a")
IN = Partition("in", 0)
CLUSTER = RequestTerms("c", False, None, {}, None, 2.0)
LOCAL = CLUSTER._replace(is_local=True)


@dataclass
class Encoding:
    """Encodes text; a dataclass that compares its fields has no hash."""

    name: str

    def __call__(self, text: str) -> bytes:
        return text.encode(self.name)


def read_when_counted(
    tmp_path: Path, look: Callable[[PromptReads, LocalStores, Any], None]
) -> None:
    """Call `look` when two records of the key "a" are counted and committed."""
    world = World(build_counting_topology(), tmp_path)
    world.load("x", "x", key="a")
    stores = create_counted_stores(world)
    reads: Any = SimpleNamespace(local=stores)

    def look_once() -> bool:
        if not world.consumed(0):
            return False
        look(PromptReads(reads), stores, world.loop.tasks["0_0"])
        return True

    world.run_until(look_once)


def test_a_look_up_of_a_key_that_is_here_needs_no_other_thread(tmp_path: Path) -> None:
    def look(reads: PromptReads, stores: LocalStores, task: Any) -> None:
        assert reads.find_prompt_answer(CLUSTER, LOOK_UP) is None  # a broker has to be asked first
        assert stores.count_partitions("c") == 1
        for terms in (CLUSTER, LOCAL, CLUSTER._replace(at_least={IN: 2})):
            found = reads.find_prompt_answer(terms, LOOK_UP)
            assert found is not None
            assert [row.value for row in found.rows] == [2]
            assert found.position == {IN: 2}

    read_when_counted(tmp_path, look)


def test_what_may_have_to_be_waited_for_is_left_to_other_threads(tmp_path: Path) -> None:
    def look(reads: PromptReads, stores: LocalStores, task: Any) -> None:
        stores.count_partitions("c")
        absent = replace(LOOK_UP, key="b")
        assert reads.find_prompt_answer(CLUSTER, absent) is None
        found = reads.find_prompt_answer(LOCAL, absent)
        assert found is not None
        assert not found.rows
        assert found.partitions == {0}
        assert reads.find_prompt_answer(CLUSTER, StoreRead(key_from="a")) is None
        assert reads.find_prompt_answer(CLUSTER._replace(stale_ok=StaleBounds(1)), LOOK_UP) is None
        later = CLUSTER._replace(at_least={IN: 3})
        assert reads.find_prompt_answer(later, LOOK_UP) is None
        with pytest.raises(PositionNotReached, match="up to offset 3"):
            reads.find_prompt_answer(later._replace(is_local=True), LOOK_UP)

    read_when_counted(tmp_path, look)


def test_one_window_of_a_key_needs_no_other_thread_and_several_do(tmp_path: Path) -> None:
    app = App("a")
    grouped = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
    grouped.windowed_by(windows.tumbling(10, grace=100)).count(store="c")
    topology = app.topology()
    world = World(topology, tmp_path)
    world.load("x", "x", key="a")
    stores = create_counted_stores(world, topology=topology)
    reads: Any = SimpleNamespace(local=stores)

    def look_once() -> bool:
        if not world.consumed(0):
            return False
        stores.count_partitions("c")
        start_ms = stores.read("c", LOOK_UP).rows[0].start_ms
        assert start_ms is not None
        one = replace(LOOK_UP, from_ms=start_ms, to_ms=start_ms)
        found = PromptReads(reads).find_prompt_answer(CLUSTER, one)
        assert found is not None
        assert [(row.value, row.start_ms) for row in found.rows] == [(2, start_ms)]
        for several in (LOOK_UP, replace(one, to_ms=None), replace(one, to_ms=start_ms + 1)):
            assert PromptReads(reads).find_prompt_answer(CLUSTER, several) is None
        return True

    world.run_until(look_once)


def test_look_ups_behind_a_commit_have_what_it_has_added(tmp_path: Path) -> None:
    """A view of a store is kept as long as no commit changes it, and has its stream time."""
    app = App("a")
    grouped = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
    grouped.windowed_by(windows.tumbling(10, grace=100)).count(store="c")
    topology = app.topology()
    world = World(topology, tmp_path)
    stores = create_counted_stores(world, topology=topology)
    reads = PromptReads(cast(Any, SimpleNamespace(local=stores)))

    def find_counts(start_ms: int) -> list[int]:
        stores.count_partitions("c")
        one = replace(LOOK_UP, from_ms=start_ms, to_ms=start_ms)
        found = reads.find_prompt_answer(LOCAL._replace(partitions=frozenset((0,))), one)
        assert found is not None
        return [row.value for row in found.rows]

    def commit_records() -> bool:
        world.turn()
        return world.consumed()

    partition = Partition("in", 0)
    for start_ms, expected in ((0, [1]), (0, [2]), (50, [1])):
        world.kafka.append_record(partition, b"a", b"x", start_ms)
        wait_until(commit_records, what="the record is committed")
        for _ in range(2):
            assert find_counts(start_ms) == expected
    assert find_counts(0) == [2]
    # The answer to a commit that took effect is lost: the task is rolled back, and restores it.
    world.script.fail("producer.commit_transaction", OutcomeUnknown("?"), after=True)
    world.kafka.append_record(partition, b"a", b"x", 70)
    wait_until(commit_records, what="the record is committed")
    wait_until(lambda: is_running_again(world), what="the task runs again")
    assert find_counts(70) == [1]


def is_running_again(world: World) -> bool:
    """Return whether the only task runs, behind a turn of its thread."""
    world.turn()
    return [task.state for task in world.loop.tasks.values()] == [TaskState.RUNNING]


class MovingTasks:
    """Holds stores whose assignment changes, and whose task may go, after so many looks at them."""

    def __init__(self, world: World, *, is_task_gone: bool) -> None:
        self.looks_left: int | None = None
        self.fetch_count = 0
        times = ThreadAssignmentTimes("t", AssignmentInfo(("0_0",), ()), 0.0, 100.0)
        moved = times._replace(assignment=AssignmentInfo(("0_0",), ()))
        tasks = list(world.loop.tasks.values())
        self.stores = create_counted_stores(
            world,
            list_assignments=lambda: [moved if self._look() else times],
            list_tasks=lambda: [] if self._look() and is_task_gone else tasks,
            fetch_partition_counts=self._fetch_counts,
        )

    def _look(self) -> bool:
        """Return whether tasks have moved."""
        if self.looks_left is None:
            return False
        self.looks_left -= 1
        return self.looks_left < 0

    def _fetch_counts(self) -> dict[str, int]:
        self.fetch_count += 1
        return {"in": 1}


@pytest.mark.parametrize("is_task_gone", [False, True])
@pytest.mark.parametrize("terms", [CLUSTER, LOCAL, LOCAL._replace(at_least={IN: 2})])
def test_no_broker_is_asked_when_tasks_move_during_a_look_up(
    tmp_path: Path, terms: RequestTerms, is_task_gone: bool
) -> None:
    world = World(build_counting_topology(), tmp_path)
    world.load("x", "x", key="a")

    def look_at_each_moment() -> bool:
        if not world.consumed(0):
            return False
        for moment in count():
            moving = MovingTasks(world, is_task_gone=is_task_gone)
            moving.stores.count_partitions("c")
            moving.looks_left = moment
            reads: Any = SimpleNamespace(local=moving.stores)
            found = PromptReads(reads).find_prompt_answer(terms, LOOK_UP)
            assert moving.fetch_count == 1, moment
            if moving.looks_left >= 0:  # the look-up was over before
                assert found is not None
                assert moment > 3
                return True
        return False

    world.run_until(look_at_each_moment)


def test_a_function_gets_no_thread_before_its_position_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = StoreQuery("value", "c", lambda store: store.get("a"), list_results)
    read = StoreRead(call=StoreCall(query, {}))
    started = []
    start = threading.Thread.start

    def note_start(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    def look(_: PromptReads, stores: LocalStores, task: Any) -> None:
        stores.count_partitions("c")
        reads: Any = SimpleNamespace(local=stores, is_stopping=False)

        async def ask(terms: RequestTerms, read: StoreRead = read) -> list[Any]:
            threads = ReadThreads(reads, QueryMeasurements())
            answer, _ = await threads.read_answer(terms, read, lambda answer: b"")
            return [row.value for row in answer.rows]

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", note_start)
            for partitions in (None, frozenset((0,))):
                later = LOCAL._replace(at_least={IN: 3}, partitions=partitions, wait_s=0.1)
                with pytest.raises(PositionNotReached, match="up to offset 3"):
                    asyncio.run(ask(later))
            with pytest.raises(ConfigError, match=r"can't be called with \{'x': 1\}"):
                asyncio.run(ask(later, StoreRead(call=StoreCall(query, {"x": 1}))))
            assert started == []
            assert asyncio.run(ask(LOCAL._replace(at_least={IN: 2}))) == [2]
            assert started == ["query value"]
            with pytest.raises(ConfigError, match="in has 1 partition"):
                asyncio.run(ask(LOCAL._replace(at_least={Partition("in", 1): 3})))

    read_when_counted(tmp_path, look)


def test_a_commit_that_is_being_written_is_not_waited_for(tmp_path: Path) -> None:
    def look(reads: PromptReads, stores: LocalStores, task: Any) -> None:
        stores.count_partitions("c")
        task.commit_sequence += 1
        began_s = time.monotonic()
        for terms in (CLUSTER, LOCAL, LOCAL._replace(at_least={IN: 2})):
            assert reads.find_prompt_answer(terms, LOOK_UP) is None
        assert time.monotonic() - began_s < 0.9  # a thread may wait for a second, each time
        task.commit_sequence -= 1

    read_when_counted(tmp_path, look)


def test_a_serde_that_may_wait_is_called_on_other_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(reads: PromptReads, stores: LocalStores, task: Any) -> None:
        stores.count_partitions("c")
        spec, sub = stores.find_store("c")
        slow = serdes.of(lambda text: text.encode(), lambda data: data.decode(), name="string")
        unhashable = serdes.of(Encoding("utf-8"), lambda data: data.decode())
        with pytest.raises(TypeError):
            hash(unhashable)
        for given in (
            replace(spec, key=slow),
            replace(spec, value=slow),
            replace(spec, key=unhashable),
            replace(spec, value=unhashable),
        ):
            monkeypatch.setattr(stores, "find_store", lambda name, given=given: (given, sub))
            anew: Any = SimpleNamespace(local=stores)
            assert PromptReads(anew).find_prompt_answer(LOCAL, LOOK_UP) is None
            assert PromptReads(anew).find_partition_elsewhere(CLUSTER, LOOK_UP) is None

    read_when_counted(tmp_path, look)
