"""Run a worker of the crash matrix: `python -m tests.crashes.worker ARGUMENTS`.

When a named step is reached for the n-th time it sends a signal to a process: SIGKILL or SIGSTOP,
to itself or to the broker. What it writes to its disks, and what it restores, goes in small
batches, so that there is a middle of each. How much was replayed into each store is in a file.
With `--after markers` it signals when no transaction waits for its markers.
With `--clock-shift FILE` days may pass by its wall clock (see `tests.clock_shift`).
With `--bug NAME` it runs with a planted bug (see `tests.crashes.bugs`).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

from state.rocksdb.batches import ChangeBatchWriter
from streams import App
from streams.common.topic_partitions import Partition
from streams.processes.signals import StopRequest
from streams.runtime.restoring.changelog_reader import StoreChangelogReader
from streams.runtime.restoring.progress import RestoreListener
from streams.runtime.threads.commit import CommitStep
from streams.testing.commit_steps import start_observed_app
from tests.crashes import ticking, topology
from tests.crashes.bugs import BUGS
from tests.crashes.operators import expiring, joined, windowed
from tests.kafka.markers import wait_for_markers

_KEYS_A_BATCH = 4
_RECORDS_A_BATCH = 40


class Crashes:
    """Sends the signal `number` to a process at each point of `points`, one after the other.

    A point is a step and how many times it must have been reached. STORING counts in a commit only,
    not in the restore before it. RESTORING counts once `is_on_disk`, that something was restored to
    a disk: which changelog comes first is for the client to say, and what a store in memory was
    given is gone with the process. The id of the process is in the file `victim`: nothing counts
    before there is one, and it is gone once the process was signalled.
    """

    def __init__(
        self,
        points: Sequence[str],
        number: signal.Signals,
        victim: Path,
        is_on_disk: Callable[[], bool],
    ) -> None:
        parsed = (point.split(":") for point in points)
        self._points = [(CommitStep[step], int(times)) for step, times in parsed]
        self._number = number
        self._victim = victim
        self._is_on_disk = is_on_disk
        self.prepare: Callable[[], None] = lambda: None
        """Is called before the signal."""
        self._committing = False
        self._met = 0

    def reached(self, now: CommitStep) -> None:
        if now is not CommitStep.STORING:
            self._committing = now is CommitStep.COMMITTED
        if not self._points or not self._victim.exists():
            return
        step, times = self._points[0]
        if now is not step or (now is CommitStep.STORING and not self._committing):
            return
        if now is CommitStep.RESTORING and not self._is_on_disk():
            return
        self._met += 1
        if self._met == times:
            self._met = 0
            del self._points[0]
            process = int(self._victim.read_text())
            self._victim.unlink()
            self.prepare()
            _signal(process, self._number)


def _signal(process: int, number: signal.Signals) -> None:
    """Send the signal; if it stops this process, it has stopped before this returns."""
    if process == os.getpid():
        # By way of the process another thread may take it: on a busy machine this one goes on for
        # milliseconds, far enough for a commit.
        signal.pthread_kill(threading.get_ident(), number)
    else:
        os.kill(process, number)


class Replayed(RestoreListener):
    """Keeps in a file how many records were replayed into each store."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records: Counter[str] = Counter()
        self._write()

    def on_batch_restored(
        self, changelog: Partition, store: str, position: int, records: int
    ) -> None:
        self.records[store] += records
        self._write()

    def has_any(self, stores: Collection[str]) -> bool:
        """Tell whether a record was replayed into one of these stores."""
        return any(self.records[store] for store in stores)

    def _write(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(self.records))
        fresh.replace(self._path)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("servers", "application", "source", "target", "guarantee"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("state", "victim", "replayed", "counters"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--kind", default="every-store")
    parser.add_argument("--at", nargs="*", default=[], metavar="STEP:TIMES")
    parser.add_argument("--signal", default="SIGKILL")
    parser.add_argument("--session", type=int, default=10_000)
    parser.add_argument("--transaction", type=int, default=10_000)
    parser.add_argument("--standbys", type=int, default=0)
    parser.add_argument("--after", choices=("markers",))
    parser.add_argument("--clock-shift", type=Path)
    parser.add_argument("--bug", choices=BUGS)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    ChangeBatchWriter.batch_step_count, ChangeBatchWriter.batch_bytes_max = _KEYS_A_BATCH, 1
    StoreChangelogReader.records_max = _RECORDS_A_BATCH
    if given.bug is not None:
        BUGS[given.bug]()
    build: Callable[..., App] = {
        "every-store": topology.build,
        "ticking": ticking.build,
        "windowed": windowed.build,
        "joined": joined.build,
        "expiring": expiring.build,
    }[given.kind]
    app = build(
        given.application,
        given.source,
        given.target,
        bootstrap_servers=given.servers,
        state_dir=given.state,
        processing_guarantee=given.guarantee,
        commit_interval_ms=topology.COMMIT_INTERVAL_MS,
        session_timeout_ms=given.session,
        transaction_timeout_ms=given.transaction,
        request_timeout_ms=min(30_000, given.transaction),
        heartbeat_interval_ms=200,
        num_standby_replicas=given.standbys,
        max_poll_records=500,
        clock_shift_file=given.clock_shift,
    )
    stop = StopRequest()
    signal.signal(signal.SIGTERM, lambda *_: stop.make_request())
    replayed = Replayed(given.replayed)
    specs = [spec for sub in app.topology().subtopologies for spec in sub.stores]
    on_disk = {spec.name for spec in specs if spec.persistent}
    crashes = Crashes(
        given.at, signal.Signals[given.signal], given.victim, lambda: replayed.has_any(on_disk)
    )
    if given.after == "markers":
        crashes.prepare = partial(wait_for_markers, given.servers)
    with start_observed_app(app, crashes.reached, restore_listener=replayed) as running:
        while not stop.wait_until_made(0.05) and running.state != "ERROR":
            pass
    given.counters.write_text(json.dumps(running.metrics()))


if __name__ == "__main__":
    main()
