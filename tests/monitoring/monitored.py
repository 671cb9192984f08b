"""Run the application of words: a broker, workers, and the Prometheus that scrapes them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streams.commands.metric_ranges import list_metric_rows
from streams.commands.metric_scrapes import Scraper
from tests.brokers import EmbeddedProcess
from tests.monitoring.prometheus import EVALUATION_S, Prometheus, fetch, wait_until_seen
from tests.processes import HOST, ServerProcess, free_ports

TIME_SCALE = 60
"""Rules and queries have their durations divided by it, so that five minutes are five seconds."""
WORKERS = 3
STUCK_AFTER_MS = 2_000


class Worker(ServerProcess):
    """Represents one worker of the application, with its metrics and queries on two ports."""

    def __init__(
        self, servers: str, state: Path, port: int, query_port: int, settings: Sequence[str]
    ) -> None:
        super().__init__("worker")
        self.port, self.query_port = port, query_port
        self._command = [
            *(sys.executable, "-m", "streams", "run", "tests.monitoring.words:app"),
            *("--bootstrap-servers", servers, "--state-dir", str(state)),
            *("--health-port", str(port), "--set", f"stuck_after_ms={STUCK_AFTER_MS}"),
            *("--set", "metrics_recording_level=debug", "--set", f"query_port={query_port}"),
            *(word for each in settings for word in ("--set", each)),
        ]

    def spawn_worker(self) -> None:
        self.spawn(self._command)

    def wait_until_running(self) -> None:
        self.wait_until_ready(self._is_running)

    def _is_running(self) -> bool:
        try:
            return '"RUNNING"' in fetch(self.port, "/health")[1]
        except OSError:
            return False


class Monitored:
    """Represents the application, its broker, and the Prometheus that scrapes them.

    The broker keeps its data in `broker_data_path`, if there is one.
    """

    def __init__(
        self,
        directory: Path,
        exits: ExitStack,
        *,
        broker_data_path: Path | None = None,
        broker_settings: Mapping[str, str] | None = None,
        worker_settings: Sequence[str] = (),
    ) -> None:
        self.produced = 0
        """The number of records that `produce` has written."""
        metrics_port, *free = free_ports(1 + 2 * WORKERS)
        ports, query_ports = free[:WORKERS], free[WORKERS:]
        self.broker = EmbeddedProcess(
            broker_settings, options=["--metrics-port", str(metrics_port)]
        )
        if broker_data_path is not None:
            self.broker.data_dir = broker_data_path
        exits.callback(self.broker.close)
        self.broker.start()
        servers = self.broker.bootstrap_servers
        create_topics(servers)
        self.workers = [
            Worker(servers, directory / f"state-{port}", port, query_port, worker_settings)
            for port, query_port in zip(ports, query_ports, strict=True)
        ]
        for worker in self.workers:
            exits.callback(worker.close)
            exits.callback(worker.kill)
            worker.spawn_worker()
        for worker in self.workers:
            worker.wait_until_running()
        targets = {
            "millrace-worker": [f"{HOST}:{port}" for port in ports],
            "millrace-broker": [f"{HOST}:{metrics_port}"],
        }
        self.metrics_ports = (metrics_port, *ports)
        self.prometheus = Prometheus(targets, TIME_SCALE)
        exits.callback(self.prometheus.close)
        self.prometheus.start()

    def produce(
        self,
        *values: str,
        key: str | None = None,
        without_keys: bool = False,
        age_s: int = 0,
    ) -> None:
        """Write records, each with its number as key, or all with one key or with none.

        Their timestamps are so many seconds old.
        """
        servers = self.broker.bootstrap_servers
        producer = Producer(
            {"bootstrap.servers": servers, "queue.buffering.max.messages": 1_000_000}
        )
        time_ms = round((time.time() - age_s) * 1_000)
        for number, value in enumerate(values):
            chosen = None if without_keys else key or str(number)
            producer.produce("words-in", key=chosen, value=value, timestamp=time_ms)
        producer.flush()
        self.produced += len(values)

    def wait_for_alerts(self, *names: str) -> None:
        """Wait until exactly these alerts fire."""
        firing: set[str] = set()

        def fire() -> bool:
            firing.clear()
            firing.update(self.prometheus.list_firing())
            return firing == set(names)

        wait_until_seen(fire, what=lambda: f"{names} do not fire, but {firing}")

    def provoke_alerts(self, provoke: Callable[[], object], *names: str) -> None:
        """Go on provoking a fault until exactly these alerts fire, and end it then."""
        firing: set[str] = set()

        def fire() -> bool:
            provoke()
            firing.clear()
            firing.update(self.prometheus.list_firing())
            return firing == set(names)

        wait_until_seen(fire, what=lambda: f"{names} do not fire, but {firing}")

    def find_alerts_in_quiet(self, seconds: int, lookback_s: int) -> set[str]:
        """Return the alerts that fire or are pending in so many seconds from now on.

        Those seconds are meant before which no scrape is missing for as long as rules look back:
        what alerts say of a time in which the machine stood still says nothing of the application.
        An alert that is pending counts, as one that a missing scrape would keep from firing.
        """
        begin_s = self._read_time_s() + lookback_s
        window = f"[{lookback_s}s]"
        complete = (
            f"min(count_over_time(up{window})) >= {lookback_s - 1} and "
            f"min(min_over_time(up{window})) == 1"
        )
        # Alerts of a second in which rules were evaluated, and not those of an earlier one.
        active = f"timestamp(ALERTS) > time() - {EVALUATION_S} and on () ({complete})"

        def is_observed() -> bool:
            observed = self.prometheus.query(f"count_over_time(({complete})[{span_s()}s:1s])")
            return bool(observed) and int(observed[0]["value"][1]) >= seconds

        def span_s() -> int:
            return max(round(self._read_time_s() - begin_s), 1)

        wait_until_seen(is_observed, what=f"{seconds} s without a missing scrape before")
        found = self.prometheus.query(
            f"count by (alertname) (count_over_time(({active})[{span_s()}s:1s]))"
        )
        return {each["metric"]["alertname"] for each in found}

    def _read_time_s(self) -> float:
        seconds: float = self.prometheus.query("vector(time())")[0]["value"][0]
        return seconds

    def wait_until_processed(self) -> None:
        """Wait until the workers, if none was started anew, have committed all that was written."""

        def is_processed() -> bool:
            lag = self.prometheus.query("sum(millrace_consumer_lag) == 0")
            return bool(lag) and self._count_records() >= self.produced

        wait_until_seen(is_processed, what="all records to be processed")

    def _count_records(self) -> int:
        found = self.prometheus.query("sum(millrace_thread_records_total)")
        return int(found[0]["value"][1]) if found else 0

    def read_broker_disk_free_bytes(self) -> int:
        """Return how many bytes of the broker's disk are free, once they have been scraped."""
        found: list[dict[str, Any]] = []

        def is_scraped() -> bool:
            found[:] = self.prometheus.query("millrace_disk_free_bytes")
            return bool(found)

        wait_until_seen(is_scraped, what="a scrape of the broker")
        return int(found[0]["value"][1])

    def list_marked(self) -> set[str]:
        """Return the figures that `millrace metrics` marks, of all workers and the broker."""
        addresses = [f"{HOST}:{port}" for port in self.metrics_ports]
        return {
            row.name
            for row in list_metric_rows(next(Scraper(addresses).summarize_repeatedly(1.0)))
            if not row.is_normal
        }

    def wait_for_marks(self, *names: str) -> None:
        """Wait until `millrace metrics` marks exactly these figures."""
        marked: set[str] = set()

        def is_marked() -> bool:
            marked.clear()
            marked.update(self.list_marked())
            return marked == set(names)

        wait_until_seen(is_marked, what=lambda: f"{names} are not marked, but {marked}")


def create_topics(servers: str) -> None:
    topics = [NewTopic(name, 6, 1) for name in ("words-in", "words-out", "words-dead")]
    admin = AdminClient({"bootstrap.servers": servers})
    for done in admin.create_topics(topics).values():
        done.result()
