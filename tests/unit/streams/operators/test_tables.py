"""Test tables of topics and of streams, and their filter and map_values.

The expected results are those of Kafka Streams' own TopologyTestDriver.
"""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, serdes
from streams.dsl.table import Table
from tests.unit.streams.bound import BoundTask

BOTH: Any = {"key": serdes.string, "value": serdes.string}
IN_MEMORY, VERSIONED = "in memory", "versioned"


def kept(how: str, name: str) -> Store:
    if how == VERSIONED:
        return Store.versioned(name, history=100)
    return Store.in_memory(name, caching=False)


@pytest.mark.parametrize("how", [IN_MEMORY, VERSIONED])
def test_a_filter_tells_nobody_of_a_row_that_never_was_in_it(how: str) -> None:
    app = App("a")
    table = app.table("in", **BOTH, store=kept(IN_MEMORY, "rows"))
    table.filter(lambda key, value: "x" not in value, store=kept(how, "some")).to_stream().to("out")
    task = BoundTask(app)
    for value, timestamp_ms in (("x", 1), ("y", 2), ("x", 3), ("x", 4)):
        task.pipe("k", value, timestamp_ms)
    assert task.pairs == [(b"k", b"y"), (b"k", None)]


@pytest.mark.parametrize("how", [None, IN_MEMORY, VERSIONED])
def test_a_filter_of_a_versioned_table_passes_on_each_deletion(how: str | None) -> None:
    app = App("a")
    table = app.table("in", **BOTH, store=kept(VERSIONED, "rows"))
    some = table.filter(lambda key, value: "x" not in value, store=how and kept(how, "some"))
    some.to_stream().to("out")
    task = BoundTask(app)
    for value, timestamp_ms in (("x", 1), ("y", 2), ("x", 3), ("x", 4)):
        task.pipe("k", value, timestamp_ms)
    assert [value for _, value in task.pairs] == [None, b"y", None, None]


AGGREGATES = ["count", "reduce", "aggregate"]


def aggregated(app: App, how: str, store: Store) -> Table[str, str]:
    grouped = app.stream("in", **BOTH).group_by_key()
    if how == "count":
        return grouped.count(store=store).map_values(str, value=serdes.string)
    if how == "reduce":
        return grouped.reduce(lambda old, new: old + new, store=store)
    return grouped.aggregate(
        lambda: "", lambda key, value, text: text + value, value=serdes.string, store=store
    )


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("how", AGGREGATES)
def test_the_first_result_of_a_key_has_no_old_value(how: str, caching: bool) -> None:
    """Test that the first change of a key has no old value (docs/decisions/0018)."""
    app = App("a")
    table = aggregated(app, how, Store.in_memory("s", caching=caching))
    table.group_by(lambda key, value: ("all", value), **BOTH).count()
    task = BoundTask(app)
    for value in "xy":
        task.pipe("k", value)
        task.flush()
        task.commit_stores()
    changes = serdes.changed(serdes.string)
    first, second = (changes.deserialize(value) for _, value in task.pairs)
    assert first.old is None
    assert second.old == first.new


@pytest.mark.parametrize("how", AGGREGATES)
def test_an_aggregate_of_a_stream_may_be_kept_in_a_versioned_store(how: str) -> None:
    app = App("a")
    table = aggregated(app, how, Store.versioned("s", history=10))
    table.to_stream().to("out")
    task = BoundTask(app)
    for key, value, timestamp_ms in (("k", "x", 5), ("k", "y", 3), ("l", "z", 30), ("m", "z", 9)):
        task.pipe(key, value, timestamp_ms)
    results = ["1", "2", "1"] if how == "count" else ["x", "xy", "z"]
    assert [value.decode() for _, value in task.pairs] == results  # "m" came after the history
    assert [timestamp_ms for *_, timestamp_ms, _ in task.produced] == [5, 5, 30]
    assert table._view.is_versioned


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize("caching", [False, True])
def test_a_value_that_has_expired_before_it_comes_changes_no_row_and_nobody_is_told(
    joins: bool, caching: bool
) -> None:
    app = App("a")
    store = Store.in_memory("s", ttl=10, caching=caching, value=serdes.string)
    if joins:
        rows = app.table("in", **BOTH, store=kept(IN_MEMORY, "rows"))
        table = rows.join(rows, lambda own, other: own, store=store)
    else:
        table = app.table("in", **BOTH, store=store)
    table.to_stream().to("out", **BOTH)
    task = BoundTask(app)
    for key, value, timestamp_ms in (("k", "x", 5), ("l", "y", 40), ("l", "late", 30)):
        task.pipe(key, value, timestamp_ms)  # all in one transaction
    task.flush()
    assert b"late" not in [value for _, value in task.pairs]
    assert (task.stores["s"].get("k"), task.stores["s"].get("l")) == (None, "y")
    assert task.dropped_count == (2 if joins else 1)
