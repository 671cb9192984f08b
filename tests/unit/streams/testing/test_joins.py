"""Test that records of several topics meet in one task in the order of their timestamps."""

from __future__ import annotations

from typing import Any

from streams import App, Record, TopologyTestDriver, serdes


def joined(**settings: Any) -> App:
    """Build an application that left-joins `left` with `right` within 10 ms, into `out`."""
    app = App("joined", **settings)
    left = app.stream("left", key=serdes.string, value=serdes.string)
    right = app.stream("right", key=serdes.string, value=serdes.string)
    both = left.left_join(right, lambda mine, other: f"{mine}+{other}", within=10, grace=0)
    both.to("out", value=serdes.string)
    return app


def test_what_meets_nobody_is_emitted_by_the_record_that_closes_its_window() -> None:
    """Test that stream time alone closes a join's window, though the wall clock stands still.

    A worker also looks for closed windows by the wall clock.
    """
    with TopologyTestDriver(joined(), partitions={"left": 2, "right": 2}) as driver:
        left, right, out = (driver.topic(name) for name in ("left", "right", "out"))
        for time_ms in (1, 101, 201):
            left.pipe("k", "a", time_ms)
            assert out.is_empty
            right.pipe("k", "b", time_ms + 50)
            assert out.read() == Record("k", "a+None", time_ms)


def test_with_idling_the_records_of_an_empty_partition_are_waited_for() -> None:
    with TopologyTestDriver(joined(max_task_idle_ms=100)) as driver:
        left, right, out = (driver.topic(name) for name in ("left", "right", "out"))
        left.pipe("k", "late", 205)
        left.pipe("k", "later", 300)
        driver.advance_wall_clock(50)
        right.pipe("k", "early", 200)
        assert out.is_empty  # early is processed, and then right is empty again
        driver.advance_wall_clock(99)
        assert out.is_empty
        driver.advance_wall_clock(1)
        assert out.read_values() == ["late+early"]
