"""Count the records of `counted-in`, as `CountRecords.java` does, in a worker of our own."""

from __future__ import annotations

from millrace import App, Store, serdes

app = App("counted", commit_interval_ms=100, num_stream_threads=1)
read = app.stream("counted-in", key=serdes.string, value=serdes.string, name="read")
counts = read.group_by_key().count(store=Store.persistent("counts", caching=False))
counts.to_stream().map_values(str, value=serdes.string).to("counted-out", name="write")
