"""Run the worker of the rebalance benchmark, which counts records in large values.

    python -m benchmarks.rebalance_worker SERVERS APPLICATION STATE NAME VALUE_BYTES STANDBYS \
        PROBING_MS SESSION_MS HEARTBEAT_MS ACCEPTABLE_LAG PROTOCOL

Each result bears the worker's name, so that a reader sees which worker has processed the record.
`benchmarks/peers/java/Summing.java` does the same with Kafka Streams.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Literal, cast

from benchmarks.restore_log import RestoreLog
from streams import App, Store, serdes
from streams.processes.signals import StopRequest

COUNT_BYTES = 8
_START_S = 600.0


def create_app(arguments: list[str]) -> App:
    """Create the application from the arguments of the command line."""
    servers, application, state, name, value_bytes, *times, protocol = arguments
    assert protocol in ("classic", "streams"), protocol
    standbys, probing_ms, session_ms, heartbeat_ms, acceptable_lag = map(int, times)
    app = App(
        application,
        bootstrap_servers=servers,
        state_dir=Path(state),
        group_protocol=cast(Literal["classic", "streams"], protocol),
        num_standby_replicas=standbys,
        probing_rebalance_interval_ms=probing_ms,
        acceptable_recovery_lag=acceptable_lag,
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=heartbeat_ms,
        commit_interval_ms=100,
    )
    size, owner = int(value_bytes), name.encode()

    def add_one(_key: bytes, _value: bytes, summed: bytes) -> bytes:
        count = int.from_bytes(summed[:COUNT_BYTES], "big") + 1
        return count.to_bytes(COUNT_BYTES, "big").ljust(size, b"\0")

    records = app.stream(f"{application}-in", key=serdes.bytes, value=serdes.bytes)
    sums = records.group_by_key().aggregate(
        lambda: bytes(size),
        add_one,
        value=serdes.bytes,
        # The reader expects a result of each record, also of those that came in one commit.
        store=Store.persistent("sums", caching=False),
    )
    results = sums.to_stream().map_values(
        lambda summed: summed[:COUNT_BYTES] + owner, value=serdes.bytes
    )
    results.to(f"{application}-out")
    return app


def main() -> None:
    """Run the worker until SIGTERM, and log what it restores in its state directory."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    stop = StopRequest()
    signal.signal(signal.SIGTERM, lambda *_: stop.make_request())
    restores = RestoreLog(Path(sys.argv[3]))
    with create_app(sys.argv[1:]).start(restore_listener=restores) as running:
        running.wait_for("RUNNING", _START_S)
        os.write(1, b"RUNNING\n")
        while not stop.wait_until_made(1):
            pass


if __name__ == "__main__":
    main()
