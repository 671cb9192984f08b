"""Take away guards against silent errors, and see that the laws which they keep are broken.

Each law holds if results are right or the application refuses. With the guard taken away it must
be seen broken: else the guard guards nothing, or the law does not look. Bugs that only passing days
show are planted in `tests/simulation`. The list of all is in docs/decisions/0051.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pytest

from streams import App, Processor, Record, StreamsError, TopologyTestDriver, serdes
from streams.errors import StoreUnavailable
from streams.membership.protocol import AssignmentInfo
from streams.processor import context
from streams.queries.store_locations import StoreLocations, ThreadAssignment
from streams.topology import build
from tests.simulation.bugs import replaced
from tests.simulation.runtime.bugs import several
from tests.unit.streams.queries.test_store_locations import Worker
from tests.unit.streams.runtime.world import World, build_counting_topology

TEXT: Any = {"key": serdes.string, "value": serdes.string}
KEYS = [f"key {number}" for number in range(10)]


# Topics with different partition counts, whose records of one key meet in a store


def count_merged_topics(directory: Path) -> None:
    """Check that a key of two topics has one count, or that they are refused."""
    app = App("a")
    merged = app.stream("x", **TEXT).merge(app.stream("y", **TEXT))
    merged.group_by_key().count(store="counts").to_stream().to("out")
    with suppress(StreamsError), TopologyTestDriver(app, partitions={"x": 4, "y": 3}) as driver:
        for key in KEYS:
            driver.topic("x").pipe(key, "x")
            driver.topic("y").pipe(key, "y")
        assert dict(driver.topic("out").read_pairs()) == dict.fromkeys(KEYS, 2)


def unequal_topics_accepted() -> AbstractContextManager[None]:
    return replaced(build, "find_topics_by_store", lambda original: lambda *_: {})


# The store of a table that is restored from the table's own topic


class Correct(Processor[str, str, str, str]):
    stores = ("rows",)

    def process(self, record: Record[str, str]) -> None:
        self.context.store("rows").put(record.key, record.value)


def correct_rows_of_a_table(directory: Path) -> None:
    """Check that a row that a step has written is there after a crash, or that it is refused."""
    app = App("a", topology_optimization="all")
    app.table("rows", **TEXT, store="rows")
    app.stream("corrections", **TEXT).process(Correct)
    with suppress(StreamsError), TopologyTestDriver(app) as driver:
        driver.crash("COMMITTED")
        driver.topic("corrections").pipe("k", "corrected")
        driver.restart()
        assert driver.store("rows").get("k") == "corrected"


def writes_to_a_table_s_store_accepted() -> AbstractContextManager[None]:
    return replaced(context, "ReadOnlyTableStore", lambda original: lambda store, **_: store)


# A query while a task that may have the key is not here


def query_a_key_of_a_task_that_is_not_here(directory: Path) -> None:
    """Check that a key which another thread or worker may have is not said to be missing."""
    in_transit = AssignmentInfo(("0_2",), ())
    cases: list[list[ThreadAssignment]] = [[("thread 2", None)], [("thread 2", in_transit)], []]
    for number, others in enumerate(cases):
        world = World(build_counting_topology(), directory / str(number), partitions=2)
        world.load("x", key="a", partition=0)
        world.load("x", key="b", partition=1)
        worker = Worker(world)
        worker.counts = {"in": 3}
        worker.assignments += others
        answers: list[object] = []

        def look(worker: Worker = worker, answers: list[object] = answers) -> None:
            with suppress(StoreUnavailable):
                answers.append(worker.view().get("a key of partition 2"))

        worker.run(look)
        assert answers == []


def queries_answered_with_what_is_here() -> AbstractContextManager[None]:
    return several(
        replaced(StoreLocations, "find_transition", lambda original: lambda *_: ""),
        replaced(StoreLocations, "find_missing_partitions", lambda original: lambda *_: ()),
    )


@pytest.mark.parametrize(
    ("check_law", "plant"),
    [
        (count_merged_topics, unequal_topics_accepted),
        (correct_rows_of_a_table, writes_to_a_table_s_store_accepted),
        (query_a_key_of_a_task_that_is_not_here, queries_answered_with_what_is_here),
    ],
    ids=lambda function: function.__name__,
)
def test_a_law_holds_and_is_broken_without_its_guard(
    check_law: Callable[[Path], None],
    plant: Callable[[], AbstractContextManager[None]],
    tmp_path: Path,
) -> None:
    check_law(tmp_path / "guarded")
    with plant(), pytest.raises(AssertionError):
        check_law(tmp_path / "not guarded")
