"""Test records at the last timestamp that Kafka has, 2^63 - 1 ms: senders' mistakes have it.

What Kafka Streams 4.4 does was seen in its TopologyTestDriver: suppress and a join with a grace
forward such a record once its wait is over, and do not fail where nothing waits.
"""

from __future__ import annotations

from typing import Any

from state.keys import TIME_MAX
from streams import App, Store, TopologyTestDriver, serdes, until_time_limit

BOTH: Any = {"key": serdes.string, "value": serdes.string}


def read(driver: TopologyTestDriver) -> list[tuple[Any, Any, int]]:
    return [(r.key, r.value, r.timestamp_ms) for r in driver.topic("out").read_all()]


def test_suppress_without_a_wait_forwards_a_record_of_the_last_time() -> None:
    app = App("app")
    app.table("in", **BOTH).suppress(until_time_limit(0)).to_stream().to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", "v", timestamp_ms=TIME_MAX)
        driver.topic("in").pipe("k", "w", timestamp_ms=TIME_MAX)
        assert read(driver) == [("k", "v", TIME_MAX), ("k", "w", TIME_MAX)]


def test_a_join_without_a_wait_for_rows_joins_a_record_of_the_last_time() -> None:
    app = App("app")
    rows = app.table("rows", **BOTH, store=Store.versioned("rows", history=100))
    app.stream("in", **BOTH).left_join(
        rows, lambda value, row: f"{value}+{row}", grace=0, value=serdes.string
    ).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", "v", timestamp_ms=TIME_MAX)
        assert read(driver) == [("k", "v+None", TIME_MAX)]


def test_a_join_of_streams_finds_what_is_in_a_window_beyond_the_last_time() -> None:
    app = App("app")
    left, right = app.stream("left", **BOTH), app.stream("right", **BOTH)
    left.join(right, lambda one, other: f"{one}+{other}", within=5, value=serdes.string).to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("left").pipe("k", "a", timestamp_ms=TIME_MAX - 20)
        driver.topic("right").pipe("k", "b", timestamp_ms=TIME_MAX - 3)
        driver.topic("left").pipe("k", "c", timestamp_ms=TIME_MAX - 1)
        assert read(driver) == [("k", "c+b", TIME_MAX - 1)]
