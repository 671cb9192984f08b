"""Count the records of `counted-in`, as `CountRecords.java` does, in a worker of our own.

The counts go to a topic, and through a suppression that holds three keys.
"""

from __future__ import annotations

from datetime import timedelta

from millrace import App, Store, serdes, until_time_limit

app = App("counted", commit_interval_ms=100, num_stream_threads=1)
read = app.stream("counted-in", key=serdes.string, value=serdes.string, name="read")
counts = read.group_by_key().count(store=Store.persistent("counts", caching=False))
counts.to_stream().map_values(str, value=serdes.string).to("counted-out", name="write")
held = counts.suppress(until_time_limit(timedelta(days=1), max_records=3))
held.to_stream().for_each(lambda key, count: None)
