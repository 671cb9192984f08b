"""Test that user code which changes a key in place changes neither a store nor a cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, serdes, windows
from streams.dsl.grouped import Grouped
from streams.dsl.table import Table

KEYED: Any = {"key": serdes.json, "value": serdes.string}
Counting = Callable[[Grouped[Any, Any], bool], Table[Any, Any]]


def counted(grouped: Grouped[Any, Any], caching: bool) -> Table[Any, Any]:
    return grouped.count(store=Store.in_memory("c", caching=caching))


def in_windows(grouped: Grouped[Any, Any], caching: bool) -> Table[Any, Any]:
    kept = Store.in_memory("c", caching=caching)
    return grouped.windowed_by(windows.tumbling(100)).count(store=kept)


def in_sessions(grouped: Grouped[Any, Any], caching: bool) -> Table[Any, Any]:
    kept = Store.in_memory("c", caching=caching)
    return grouped.windowed_by(windows.session(100)).count(store=kept)


@pytest.mark.parametrize("commit", ["each_record", "manual"])
@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("counting", [counted, in_windows, in_sessions])
def test_a_step_behind_a_table_and_a_branch_beside_it_may_change_their_keys(
    counting: Counting, caching: bool, commit: Any
) -> None:
    app = App("a")
    seen: list[Any] = []

    def change(key: Any, value: Any) -> None:
        mine = getattr(key, "key", key)
        seen.append(dict(mine))
        mine["name"] = "changed"

    stream = app.stream("in", **KEYED)
    counting(stream.group_by_key(), caching).to_stream().for_each(change)
    stream.for_each(change)
    with TopologyTestDriver(app, commit=commit, stores="memory") as driver:
        for number in range(3):
            driver.topic("in").pipe({"name": "k"}, "v", timestamp_ms=number)
        driver.commit()
        driver.topic("in").pipe({"name": "k"}, "v", timestamp_ms=3)
        driver.commit()
    if caching or counting is not counted:  # Otherwise it is the record's own, as in Kafka Streams.
        assert [key for key in seen if key != {"name": "k"}] == []
