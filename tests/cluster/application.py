"""Run the application of the crash matrix on a cluster: two workers, with standby tasks.

Records flow while the cluster is in trouble. At the end every result, every changelog and what one
of the workers has on its disks are compared with a plain loop over the input.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from tests.cluster.nodes import KafkaCluster
from tests.crashes.checks import check_output, check_state
from tests.crashes.trial import CrashWorker, Trial
from tests.processes import HANG_LIMIT_S, wait_until

REPLICAS = 3
SESSION_MS, TRANSACTION_MS = 20_000, 20_000
_LOAD_PAUSE_S = 0.5


class ClusterApplication:
    """Represents an application with two workers, `one` and `two`, on a cluster."""

    def __init__(
        self,
        cluster: KafkaCluster,
        name: str,
        directory: Path,
        *,
        servers: str | None = None,
        session_ms: int = SESSION_MS,
    ) -> None:
        """Create the topics. `servers` are the addresses that workers are given, if not all."""
        self.cluster = cluster
        self.name = name
        self.trial = Trial(cluster.bootstrap_servers, name, directory / "one", replicas=REPLICAS)
        self.one, self.two = (
            CrashWorker(
                self.trial,
                state=directory / each,
                servers=servers,
                standbys=1,
                session=session_ms,
                transaction=TRANSACTION_MS,
            )
            for each in ("one", "two")
        )

    @property
    def workers(self) -> tuple[CrashWorker, CrashWorker]:
        return self.one, self.two

    def start(self, *points: str) -> None:
        """Start both workers, and wait until they have processed something.

        The first stops itself at each of the `points` (STEP:TIMES), when it is aimed at.
        """
        self.one.start(*points, number="SIGSTOP")
        self.two.start()
        self.process_some()

    def process_some(self) -> None:
        """Load some records, and wait until their results are committed."""
        self.trial.load()
        self.wait_for_results()

    def wait_for_results(self) -> None:
        """Wait until all that is loaded is processed. Raises AssertionError if a worker ended."""
        self.trial.wait_for_output(unless=self._has_lost_worker)
        self.check_running()

    def _has_lost_worker(self) -> bool:
        return any(worker.ended is not None for worker in self.workers)

    def check_running(self) -> None:
        """Raise AssertionError, with the end of its log, if a worker has ended by itself."""
        for worker in self.workers:
            assert worker.ended is None, worker.log_tail(80)

    @contextmanager
    def records_flow(self) -> Iterator[None]:
        """Load records without an end while the block runs, and then wait for all results."""
        stop = Event()
        failures: list[Exception] = []

        def load_until_stopped() -> None:
            try:
                while not stop.wait(_LOAD_PAUSE_S):
                    self.trial.load(unless=stop.is_set)
            except Exception as error:
                failures.append(error)

        thread = Thread(target=load_until_stopped, name="flow")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(HANG_LIMIT_S)
        assert not failures, failures
        self.trial.deliver()
        self.wait_for_results()

    def wait_for_progress(self, count: int = 2) -> None:
        """Wait until `count` batches more are in the output while records flow."""
        begin = self.count_results()
        wait_until(
            lambda: self._has_lost_worker() or self.count_results() >= begin + count * 40,
            what=lambda: f"no results after {begin}: {self.count_results()}",
        )
        self.check_running()

    def count_results(self) -> int:
        """Return how many results were read so far."""
        return sum(map(len, self.trial.read_output().values()))

    def finish(self) -> None:
        """Stop the workers one after the other, and check results, changelogs and disks.

        The first takes over from its standby tasks what the second had.
        """
        self.two.finish()
        self.trial.load()
        self.trial.wait_for_output(unless=lambda: self.one.ended is not None)
        assert self.one.ended is None, self.one.log_tail(80)
        self.one.finish()
        check_output(self.trial)
        check_state(self.trial)

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.close()
        self.trial.close()
