r"""Run one topology with Millrace, or the hand-written loop in its place, until SIGTERM.

    python -m benchmarks.peers.worker WAY RECORDS TOPOLOGY SERVERS APPLICATION STATE \
        LEFT RIGHT OUTPUT

`java/PeerApplication.java` does the same with Kafka Streams. The loop ends after RECORDS records,
and then only waits.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path

from benchmarks.handwritten import count_every_update, map_values, run_loop
from benchmarks.peers.topologies import TOPOLOGIES, Topics
from benchmarks.peers.workloads import LOOP, PARTITIONS
from streams import App

COMMIT_INTERVAL_MS = 100
_LOOPS = {"map": map_values, "count": count_every_update}


def create_app(topology: str, servers: str, application: str, state: Path, topics: Topics) -> App:
    """Create the application with the settings that Kafka Streams is given too."""
    app = App(
        application,
        bootstrap_servers=servers,
        state_dir=state,
        processing_guarantee="exactly_once_v2",
        commit_interval_ms=COMMIT_INTERVAL_MS,
        cache_max_bytes=0,
        num_stream_threads=1,
        auto_offset_reset="earliest",
    )
    TOPOLOGIES[topology](app, topics)
    return app


def main() -> None:
    """Run what the command line says until SIGTERM."""
    logging.basicConfig(level=logging.WARNING)
    way, records, topology, servers, application, state, left, right, output = sys.argv[1:]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    if way == LOOP:
        run_loop(
            servers,
            left,
            partitions=PARTITIONS,
            records=int(records),
            exactly_once=True,
            commit_interval_s=COMMIT_INTERVAL_MS / 1_000,
            work=_LOOPS[topology](output),
        )
        stop.wait()
        return
    app = create_app(topology, servers, application, Path(state), Topics(left, right, output))
    with app.start():
        stop.wait()


if __name__ == "__main__":
    main()
