"""Run the application under failures: workers are killed while records come and cuts are taken.

Load, kills and cuts go on in threads of their own, each at its pace, however long a reconciliation
takes.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

from confluent_kafka.admin import AdminClient, NewTopic

from streams.common.topic_partitions import Partition
from streams.spark import Cut, read_cut
from tests.processes import wait_until
from tests.reading import records
from tests.soak_app.workers import SoakWorker
from tests.spark_soak.load import Load
from tests.spark_soak.topology import EVENTS, PARTITIONS, REPARTITION, TOPICS, app

CATCH_UP_S = 300.0
CUT_TIMEOUT_MS = 120_000
_RUNS = "-> RUNNING"
_KEEP = {"retention.ms": "-1", "retention.bytes": "-1"}
_SETTINGS = {
    "MILLRACE_LEDGER": "true",
    # Each half is reconciled alone, too: what lies between them is kept.
    "MILLRACE_REPARTITION_PURGE_INTERVAL_MS": str(10**9),
}


class Fire:
    """Starts with topics, workers and load; `stack` ends whatever is still there."""

    def __init__(
        self, stack: ExitStack, servers: str, directory: Path, workers: int, rate: int, seed: int
    ) -> None:
        self.servers = servers
        self.kills = 0
        new = [NewTopic(topic, PARTITIONS, 1, config=_KEEP) for topic in TOPICS]
        admin = AdminClient({"bootstrap.servers": servers})
        for answer in admin.create_topics(new).values():
            answer.result(30)
        app.configure(None, bootstrap_servers=servers, ledger=True)
        self.load = Load(servers, EVENTS, rate, Random(seed))
        stack.callback(self.load.end)
        self.workers: list[SoakWorker] = []
        for number in range(workers):
            self.workers.append(self._worker(number, directory))
            stack.callback(self.workers[-1].close)
        self._stop = threading.Event()
        stack.callback(self._stop.set)
        self._failed: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        wait_until(self._began, timeout_s=CATCH_UP_S, what="the first records to be processed")

    def _worker(self, number: int, directory: Path) -> SoakWorker:
        state = directory / f"machine-{number}"
        where = "tests.spark_soak.topology:app"
        return SoakWorker(f"worker-{number}", self.servers, state, _SETTINGS, where)

    def _began(self) -> bool:
        self.check()
        return any(records(self.servers, TOPICS[-1], PARTITIONS, timeout_s=CATCH_UP_S))

    def check(self) -> None:
        """Raise RuntimeError if a worker gave up, or whatever ended a thread."""
        if self._failed:
            raise self._failed[0]
        for worker in self.workers:
            if (worker.ended or 0) > 0:  # a kill is negative, and one that has left is 0
                raise RuntimeError(f"{worker.name} gave up: {worker.ended}\n{worker.log_tail()}")

    def kill_every(self, seconds: float) -> None:
        """Kill one worker after the other with `kill -9` from now on, each started again at once.

        The next one is killed once it runs: on a busy machine nothing would be processed otherwise.
        """

        def kill() -> None:
            while not self._stop.wait(seconds):
                worker = self.workers[self.kills % len(self.workers)]
                begin = worker.log_path.stat().st_size
                worker.kill()
                worker.start()
                self.kills += 1
                while _RUNS not in worker.log_since(begin) and not self._stop.wait(0.1):
                    pass

        self._thread(kill)

    def cuts(self, count: int, every_s: float) -> Iterator[Cut]:
        """Yield so many cuts as they are taken, one each `every_s`.

        However long each is looked at.
        """
        taken: queue.Queue[Cut] = queue.Queue()

        def take() -> None:
            due = time.monotonic()
            for _ in range(count):
                due += every_s
                if self._stop.wait(max(0.0, due - time.monotonic())):
                    return
                taken.put(read_cut(app, timeout_ms=CUT_TIMEOUT_MS))

        self._thread(take)
        deadline = time.monotonic() + count * (every_s + CUT_TIMEOUT_MS / 1000)
        left = count
        while left:
            try:
                cut = taken.get(timeout=0.5)
            except queue.Empty:
                self.check()
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{left} of {count} cuts were not taken") from None
                continue
            left -= 1
            yield cut

    def _thread(self, run: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                run()
            except BaseException as error:
                self._failed.append(error)

        self._threads.append(threading.Thread(target=guarded, daemon=True))
        self._threads[-1].start()

    def cease(self) -> None:
        """Stop load and kills, and let the workers process what is left and leave."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self.check()
        self.load.finish()
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is left to process; then let the workers leave."""
        wait_until(
            self._is_drained,
            timeout_s=CATCH_UP_S,
            what=lambda: "\n".join(each.log_tail() for each in self.workers),
        )
        statuses = [worker.leave() for worker in self.workers]
        if any(statuses):
            raise RuntimeError(f"workers ended with {statuses}")

    def _is_drained(self) -> bool:
        """Tell whether each committed record was processed."""
        self.check()
        cut = read_cut(app, timeout_ms=CUT_TIMEOUT_MS)
        return all(next(self._from(topic, cut), None) is None for topic in (EVENTS, REPARTITION))

    def _from(self, topic: str, cut: Cut) -> Iterator[object]:
        first = {number: cut.offsets[Partition(topic, number)] for number in range(PARTITIONS)}
        return records(self.servers, topic, PARTITIONS, first=first, timeout_s=CATCH_UP_S)

    def process(self) -> None:
        """Run one worker that processes what there is and leaves.

        This is for planted errors.
        """
        self.workers[0].start()
        self.settle()
