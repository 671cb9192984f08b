"""Define the application whose stores `benchmarks.query_costs` asks for: by key, and by window."""

from __future__ import annotations

from streams import App, serdes, windows

INPUT = "bench-query-costs"
PARTITIONS = 4
WINDOW_MS = 10_000

# The lag lets a worker that comes second have half of the tasks at once.
app = App("bench-query-costs", acceptable_recovery_lag=1_000_000_000)
grouped = app.stream(INPUT, key=serdes.string, value=serdes.bytes).group_by_key()
grouped.count(store="counts")
grouped.windowed_by(windows.tumbling(WINDOW_MS, grace=3_600_000)).count(store="windows")
