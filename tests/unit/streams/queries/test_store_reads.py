"""Test that a limited range of windows has the first ones by key, whatever the store's order."""

from __future__ import annotations

from streams import App, TopologyTestDriver, serdes, windows
from streams.queries.store_reads import StoreRead, merge_rows, read_rows

_STEP_MS = 100_000


def test_a_limited_range_of_windows_is_the_first_ones_by_key_and_start() -> None:
    app = App("a")
    grouped = app.stream("in", key=serdes.string, value=serdes.string).group_by_key()
    grouped.windowed_by(windows.tumbling(10, grace=6 * _STEP_MS)).count(store="windows")
    [spec] = app.topology().subtopologies[0].stores
    with TopologyTestDriver(app, stores="memory") as driver:
        # The keys' order is the reverse of the segments'.
        for number, key in enumerate("edcba"):
            driver.topic("in").pipe(key, "v", timestamp_ms=number * _STEP_MS)
        for limit in range(1, 7):
            read = StoreRead(limit=limit)
            rows = read_rows(spec, driver.store("windows"), read)
            found, has_more = merge_rows(spec, [rows], read)
            assert [row.key for row in found] == list("abcde"[:limit])
            assert has_more is (limit < 5)
