"""Test the warnings that the log has about late records."""

from __future__ import annotations

import pytest

from streams import App, TopologyTestDriver, serdes, windows


def test_late_records_are_told_at_once_and_then_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App("a")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by_key().windowed_by(windows.tumbling(10)).count(store="c")
    with TopologyTestDriver(app, stores="memory") as driver:
        for timestamp_ms in (100, 5, 6, 7):
            driver.topic("in").pipe("k", "v", timestamp_ms=timestamp_ms)
        (said,) = [record.message for record in caplog.records if "closed" in record.message]
        assert said.startswith("task 0_0: 1 record came when their windows had closed")
        assert "stream time is 100 ms" in said
        driver.advance_wall_clock(ms=10_000)
        driver.topic("in").pipe("k", "v", timestamp_ms=8)
        assert "task 0_0: 3 records came when" in caplog.text
