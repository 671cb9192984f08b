"""Define the application whose store `benchmarks.queries` asks for: it counts records by key."""

from __future__ import annotations

import os

from streams import App, serdes
from streams.processes import query_endpoint

INPUT = "bench-queries"
PARTITIONS = 4
STORE = "counts"
SWITCH_VARIABLE = "BENCH_SWITCH_INTERVAL_MS"

if interval_ms := os.environ.get(SWITCH_VARIABLE):
    query_endpoint.SWITCH_INTERVAL_S = float(interval_ms) / 1_000

# The lag lets a worker that comes second have half of the tasks at once, and not when it has
# followed what the first one has counted meanwhile.
app = App(
    "bench-queries",
    commit_interval_ms=100,
    session_timeout_ms=20_000,
    acceptable_recovery_lag=1_000_000_000,
)
keyed = app.stream(INPUT, key=serdes.string, value=serdes.bytes)
keyed.group_by_key().count(store=STORE)
