"""Tables of topics and of streams, and what filter and map_values make of them, as Kafka Streams'
own driver answers."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, serdes
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
