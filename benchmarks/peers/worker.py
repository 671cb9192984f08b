r"""Run one topology with Millrace, or the hand-written loop in its place, until SIGTERM.

    python -m benchmarks.peers.worker WAY RECORDS TOPOLOGY SERVERS APPLICATION STATE \
        LEFT RIGHT OUTPUT COMMIT_INTERVAL_MS GUARANTEE [CACHE_MAX_BYTES]

`java/PeerApplication.java` does the same with Kafka Streams. The loop ends after RECORDS records,
and then only waits.
"""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path

from benchmarks.handwritten import count_every_update, map_values, run_loop
from benchmarks.peers.topologies import TOPOLOGIES, Topics
from benchmarks.peers.workloads import (
    CACHE_MAX_BYTES,
    CHANGELOG_SUFFIX,
    COMMIT_INTERVAL_MS,
    EXACTLY_ONCE,
    LOOP,
    PARTITIONS,
)
from streams import App
from streams.processes.signals import StopRequest
from streams.settings.choices import ProcessingGuarantee


def create_app(
    topology: str,
    servers: str,
    application: str,
    state: Path,
    topics: Topics,
    *,
    commit_interval_ms: int = COMMIT_INTERVAL_MS,
    guarantee: ProcessingGuarantee = EXACTLY_ONCE,
    cache_max_bytes: int = CACHE_MAX_BYTES,
) -> App:
    """Create the application with the settings that Kafka Streams is given too."""
    app = App(
        application,
        bootstrap_servers=servers,
        state_dir=state,
        processing_guarantee=guarantee,
        commit_interval_ms=commit_interval_ms,
        cache_max_bytes=cache_max_bytes,
        num_stream_threads=1,
        auto_offset_reset="earliest",
    )
    TOPOLOGIES[topology](app, topics)
    return app


def main() -> None:
    """Run what the command line says until SIGTERM."""
    logging.basicConfig(level=logging.WARNING)
    way, records, topology, servers, application, state, left, right, output = sys.argv[1:10]
    commit_interval_ms = int(sys.argv[10])
    guarantee: ProcessingGuarantee = (
        EXACTLY_ONCE if sys.argv[11] == EXACTLY_ONCE else "at_least_once"
    )
    cache_max_bytes = int(sys.argv[12]) if sys.argv[12:] else CACHE_MAX_BYTES
    stop = StopRequest()
    signal.signal(signal.SIGTERM, lambda *_: stop.make_request())
    if way == LOOP:
        run_loop(
            servers,
            left,
            partitions=PARTITIONS,
            records=int(records),
            exactly_once=guarantee == EXACTLY_ONCE,
            commit_interval_s=commit_interval_ms / 1_000,
            work=(
                map_values(output)
                if topology == "map"
                else count_every_update(output, f"{application}{CHANGELOG_SUFFIX}", Path(state))
            ),
        )
        while not stop.wait_until_made(1):
            pass
        return
    topics = Topics(left, right, output)
    app = create_app(
        topology,
        servers,
        application,
        Path(state),
        topics,
        commit_interval_ms=commit_interval_ms,
        guarantee=guarantee,
        cache_max_bytes=cache_max_bytes,
    )
    with app.start():
        while not stop.wait_until_made(1):
            pass


if __name__ == "__main__":
    main()
