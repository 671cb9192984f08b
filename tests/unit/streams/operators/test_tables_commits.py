"""Test joins of tables where both sides change between two commits (docs/decisions/0022)."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, Store, TopologyTestDriver, serdes, windows
from streams.windows import Windows

TEXT: Any = {"key": serdes.string, "value": serdes.string}
NUMBER: Any = {"key": serdes.string, "value": serdes.int64}


def test_rows_deleted_on_both_sides_in_one_commit_are_gone_from_the_join() -> None:
    app = App("a")
    one, other = app.table("one", **TEXT, store="one"), app.table("other", **TEXT, store="other")
    joined = one.join(other, lambda a, b: a + b, value=serdes.string, store="joined")
    joined.to_stream().to("out")
    with TopologyTestDriver(app, commit="manual", stores="memory") as driver:
        for value in (("1", "x"), (None, None)):
            driver.topic("one").pipe("k", value[0], timestamp_ms=1)
            driver.topic("other").pipe("k", value[1], timestamp_ms=2)
            driver.commit()
        assert driver.topic("out").read_table() == {}
        assert list(driver.store("joined").all()) == []


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("order", [("one", "other"), ("other", "one")])
def test_what_an_aggregation_takes_away_was_there(order: tuple[str, str], mapped: bool) -> None:
    app = App("a")
    one, other = app.table("one", **NUMBER, store="one"), app.table("other", **NUMBER, store="two")
    if mapped:  # Look-ups then go through a step without a store.
        other = other.map_values(lambda value: value)
    one.join(other, lambda a, b: a * b, value=serdes.int64).group_by(
        lambda key, value: ("all", value), **NUMBER
    ).aggregate(
        int, lambda k, v, total: total + v, lambda k, v, total: total - v, value=serdes.int64
    ).to_stream().to("out")
    with TopologyTestDriver(app, commit="manual", stores="memory") as driver:
        for factor in (1, 10, 7):
            values = {"one": 2 * factor, "other": 3 * factor}
            for topic in order:
                driver.topic(topic).pipe("k", values[topic], timestamp_ms=factor)
            driver.commit()
            assert driver.topic("out").read_table() == {"all": 6 * factor * factor}


def test_a_table_joined_with_itself_joins_what_is_new() -> None:
    app = App("a")
    table = app.table("in", **NUMBER, store=Store.in_memory("t"))
    table.join(table, lambda a, b: a + b, value=serdes.int64).to_stream().to("out")
    with TopologyTestDriver(app, commit="manual") as driver:
        for value in (1, 2, 5):
            driver.topic("in").pipe("k", value, timestamp_ms=value)
        driver.commit()
        assert driver.topic("out").read_table() == {"k": 10}


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("cut", [windows.tumbling(10), windows.session(5)])
def test_tables_of_windows_are_joined_too(cut: Windows, caching: bool) -> None:
    app = App("a")
    one, other = (
        app.stream(topic, **TEXT)
        .group_by_key()
        .windowed_by(cut)
        .count(store=Store.in_memory(f"of-{topic}", caching=caching))
        for topic in ("one", "other")
    )
    joined = one.join(other, lambda a, b: f"{a}{b}", value=serdes.string).to_stream()
    joined.map(lambda window, value: (window.key, value), **TEXT).to("out")
    with TopologyTestDriver(app, commit="manual") as driver:
        for _ in range(2):
            for topic in ("one", "other"):
                driver.topic(topic).pipe("k", "v", timestamp_ms=1)
            driver.commit()
        assert driver.topic("out").read_values() == ["11", "21", "22"]
