"""Run the application of Kafka's smoke test, written with Millrace.

    python -m tests.smoke.application SERVERS STATE PROTOCOL

It reads `data` and writes the topics that Kafka's driver verifies: what Kafka's own application
(SmokeTestClient) writes.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from datetime import timedelta
from operator import add
from pathlib import Path
from typing import Any, Literal, cast

from millrace import App, Store, Windowed, serdes, until_window_closes, windows
from streams.dsl.stream import Stream
from streams.dsl.table import Table
from streams.processes.signals import StopRequest

APPLICATION = "SmokeTest"
PROTOCOLS = ("classic", "streams")
SESSION_MS = 6_000
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_END = _INT_MAX
"""No application counts a value that is this one."""


def create_app(servers: str, state: Path, protocol: Literal["classic", "streams"]) -> App:
    """Create the application with all twelve outputs."""
    app = App(
        APPLICATION,
        bootstrap_servers=servers,
        state_dir=state,
        group_protocol=protocol,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=200,
    )
    source = app.stream("data", key=serdes.string, value=serdes.int32)
    _drop_flush(source).to("echo")
    data = source.filter(lambda _, value: value is None or value != _END)
    grouped = data.group_by_key()
    days = grouped.windowed_by(windows.tumbling(timedelta(days=2)))

    lowest = grouped.windowed_by(
        windows.tumbling(timedelta(days=1), grace=timedelta(minutes=1))
    ).aggregate(
        lambda: _INT_MAX,
        lambda _key, value, least: min(value, least),
        value=serdes.int32,
        store=Store.persistent("uwin-min", retention=timedelta(hours=25)),
    )
    _write_windows(lowest, "min-raw")
    _write_windows(lowest.suppress(until_window_closes()), "min-suppressed")
    least = _write_and_read(app, lowest, "min", serdes.int32, "minStoreName")

    seconds = windows.hopping(
        timedelta(seconds=2), timedelta(seconds=1), grace=timedelta(seconds=30)
    )
    sums_of_seconds = grouped.windowed_by(seconds).reduce(add)
    _write_windows(sums_of_seconds, "sws-raw")
    _write_windows(sums_of_seconds.suppress(until_window_closes()), "sws-suppressed")

    highest = days.aggregate(
        lambda: _INT_MIN,
        lambda _key, value, most: max(value, most),
        value=serdes.int32,
        store="uwin-max",
    )
    most = _write_and_read(app, highest, "max", serdes.int32, "maxStoreName")
    sums = days.aggregate(
        lambda: 0,
        lambda _key, value, total: value + total,
        value=serdes.int64,
        store="win-sum",
    )
    total = _write_and_read(app, sums, "sum", serdes.int64, None)
    counts = days.count(store="uwin-cnt")
    count = _write_and_read(app, counts, "cnt", serdes.int64, "cntStoreName")

    span = most.join(least, lambda high, low: high - low, value=serdes.int32)
    _drop_flush(span.to_stream()).to("dif")
    average = total.join(count, lambda one, number: one / number, value=serdes.float64)
    _drop_flush(average.to_stream()).to("avg")

    by_count = count.group_by(
        lambda _, number: (str(number), 1), key=serdes.string, value=serdes.int64
    )
    keys_by_count = by_count.aggregate(
        lambda: 0,
        lambda _key, one, keys: keys + one,
        lambda _key, one, keys: keys - one,
        store=Store.in_memory("cntByCnt", key=serdes.string, value=serdes.int64),
    )
    keys_by_count.to_stream().to("tagg")
    return app


def _drop_flush(records: Stream[str, Any]) -> Stream[str, Any]:
    """Drop the records that end the input; they only advance the time."""
    return records.filter_not(lambda key, _: key == "flush")


def _write_windows(table: Table[Windowed[str], int], topic: str) -> None:
    """Write the table's updates with keys as Java prints them: `[key@start/end]`."""
    updates = table.to_stream().filter_not(lambda window, _: window.key == "flush")
    updates.map(
        lambda window, value: (str(window), value), key=serdes.string, value=serdes.int32
    ).to(topic)


def _write_and_read(
    app: App, table: Table[Windowed[str], int], topic: str, value: Any, store: str | None
) -> Table[str, int]:
    """Write the table's updates by their keys, and return the table of the latest of them."""
    updates = table.to_stream().map(
        lambda window, each: (window.key, each), key=serdes.string, value=value
    )
    _drop_flush(updates).to(topic)
    return app.table(topic, key=serdes.string, value=value, store=store)


def main() -> None:
    """Run a worker until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    stop = StopRequest()
    signal.signal(signal.SIGTERM, lambda *_: stop.make_request())
    servers, state, protocol = sys.argv[1:]
    assert protocol in PROTOCOLS, protocol
    app = create_app(servers, Path(state), cast(Literal["classic", "streams"], protocol))
    with app.start() as running:
        running.wait_for("RUNNING", 600)
        os.write(1, b"RUNNING\n")
        while not stop.wait_until_made(1):
            pass


if __name__ == "__main__":
    main()
