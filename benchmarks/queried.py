"""Define the application whose store `benchmarks.queries` asks for: it counts records by key."""

from __future__ import annotations

from streams import App, serdes

INPUT = "bench-queries"
PARTITIONS = 4
STORE = "counts"

app = App("bench-queries", commit_interval_ms=100, session_timeout_ms=20_000)
keyed = app.stream(INPUT, key=serdes.string, value=serdes.bytes)
keyed.group_by_key().count(store=STORE)
