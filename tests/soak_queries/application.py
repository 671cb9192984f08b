"""Define the application that is queried: it counts records by key, and by key and window."""

from __future__ import annotations

import os

from streams import App, serdes, windows
from tests.soak_queries.planted import PLANTS

INPUT = "queried-in"
PARTITIONS = 4
WINDOW_MS = 10_000

if plant := os.environ.get("QUERIES_PLANT"):
    PLANTS[plant]()

app = App("queried", num_standby_replicas=1, commit_interval_ms=100)
grouped = app.stream(INPUT, key=serdes.string, value=serdes.int64).group_by_key()
grouped.count(store="counts")
grouped.windowed_by(windows.tumbling(WINDOW_MS, grace=3_600_000)).count(store="windows")
