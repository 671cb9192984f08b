"""A worker of the crash matrix: `python -m tests.crashes.worker ARGUMENTS`.

When a named step is reached for the n-th time it sends SIGKILL to a process: to itself, or to the
broker. How much was replayed into each store goes to a file when it ends in order.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from streams.positions import Partition
from streams.runtime.commit import Step
from streams.runtime.progress import RestoreListener
from tests.crashes.topology import COMMIT_INTERVAL_MS, build


def killer(step: str | None, number: int, victim: int) -> Callable[[Step], None]:
    """Kills `victim` at the `number`-th time that `step` is reached."""
    left = number

    def reached(now: Step) -> None:
        nonlocal left
        if now.name == step:
            left -= 1
            if left == 0:
                os.kill(victim, signal.SIGKILL)

    return reached


class Replayed(RestoreListener):
    """How many records were replayed into each store."""

    def __init__(self) -> None:
        self.records: Counter[str] = Counter()

    def on_batch_restored(
        self, changelog: Partition, store: str, position: int, records: int
    ) -> None:
        self.records[store] += records


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("servers", "application", "source", "target", "guarantee"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--replayed", type=Path, required=True)
    parser.add_argument("--kill-at")
    parser.add_argument("--kill-number", type=int, default=1)
    parser.add_argument("--victim", type=int, default=os.getpid(), help="whom; default: itself")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    app = build(
        given.application,
        given.source,
        given.target,
        bootstrap_servers=given.servers,
        state_dir=given.state,
        processing_guarantee=given.guarantee,
        commit_interval_ms=COMMIT_INTERVAL_MS,
        session_timeout_ms=10_000,
        heartbeat_interval_ms=200,
        max_poll_records=500,
    )
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    reached = killer(given.kill_at, given.kill_number, given.victim)
    replayed = Replayed()
    with app.start(reached=reached, restore_listener=replayed) as running:
        while not stop.wait(0.05) and running.state != "ERROR":
            pass
    given.replayed.write_text(json.dumps(replayed.records))


if __name__ == "__main__":
    main()
