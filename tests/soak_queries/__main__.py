"""Query an application under kills: `python -m tests.soak_queries --minutes 2`.

Three workers with standbys, one of them in another network namespace where the machine has these,
count records while they are killed, stopped and sent away, a fourth one comes and goes, and the
broker is killed and restarted. Keys, windows and ranges are queried meanwhile, and every answer is
checked against the history. Status 1 if one was wrong. The seed decides which trouble comes when.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streams import serdes
from tests.brokers import SETTINGS, EmbeddedProcess
from tests.cluster.network import NamespacesRefused, NodeNetwork
from tests.page_tables import write_measured
from tests.processes import HANG_LIMIT_S, ServerProcess, free_ports
from tests.sampling import draw_seed
from tests.soak_queries.application import INPUT, PARTITIONS
from tests.soak_queries.asking import TOKEN, Asker
from tests.soak_queries.history import History
from tests.soak_queries.planted import PLANTS

KEYS = [f"key-{number:03}" for number in range(200)]
_PAGE = Path(__file__).parents[2] / "docs" / "queries.md"
_LOOPBACK = "127.0.0.1"


class QueriedWorker(ServerProcess):
    """Represents a worker that answers queries at `address`, by the words before its command."""

    def __init__(
        self,
        number: int,
        servers: str,
        address: tuple[str, int],
        words: tuple[str, ...],
        root: Path,
        plant: str,
    ) -> None:
        super().__init__(f"worker-{number}")
        self._words = words
        self._environment = {
            "MILLRACE_BOOTSTRAP_SERVERS": servers,
            "MILLRACE_STATE_DIR": str(root / f"machine-{number}"),
            "MILLRACE_SESSION_TIMEOUT_MS": "6000",
            "MILLRACE_HEARTBEAT_INTERVAL_MS": "500",
            "MILLRACE_REQUEST_TIMEOUT_MS": "5000",
            "MILLRACE_QUERY_HOST": address[0],
            "MILLRACE_QUERY_PORT": str(address[1]),
            "MILLRACE_QUERY_TOKEN": TOKEN,
            "MILLRACE_QUERY_PLAINTEXT": "true",
            "QUERIES_PLANT": plant,
        }

    def start(self) -> None:
        command = [sys.executable, "-m", "streams", "run", "tests.soak_queries.application:app"]
        self.spawn([*self._words, *command], self._environment)


class Load:
    """Writes records of known keys and times, and notes where each has come."""

    def __init__(self, servers: str, per_second: int, history: History, seed: int) -> None:
        self._random = Random(seed)
        self._history = history
        self._pause_s = 20 / per_second
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "message.timeout.ms": 600_000,
                "socket.timeout.ms": 5_000,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(HANG_LIMIT_S) == 0

    def _run(self) -> None:
        while not self._stop.is_set():
            for _ in range(20):
                key, now_ms = self._random.choice(KEYS), int(time.time() * 1000)
                self._producer.produce(
                    INPUT,
                    serdes.int64.serialize(1),
                    key,
                    timestamp=now_ms,
                    on_delivery=lambda error, message, key=key, now_ms=now_ms: (
                        self._history.add_record(key, now_ms, message.partition(), message.offset())
                    ),
                )
            self._producer.poll(0)
            time.sleep(self._pause_s)


class CommitWatch:
    """Notes again and again which offsets the application has committed."""

    def __init__(self, servers: str, history: History) -> None:
        # Not an admin client: librdkafka aborts now and then when a broker is killed under it.
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "queried",
                "isolation.level": "read_uncommitted",  # so that open transactions are no error
            }
        )
        self._history = history
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        wanted = [TopicPartition(INPUT, number) for number in range(PARTITIONS)]
        while not self._stop.wait(0.05):
            try:
                found = self._consumer.committed(wanted, timeout=2.0)
            except KafkaException:  # of a broker that was just killed
                continue
            offsets = {each.partition: each.offset for each in found if each.offset >= 0}
            self._history.add_committed(time.monotonic(), offsets)


class Soak:
    """Represents one run: a broker, three workers, load, queries and trouble."""

    def __init__(self, stack: ExitStack, options: argparse.Namespace, seed: int) -> None:
        self._random = Random(seed)
        self._minutes: float = options.minutes
        root = Path(tempfile.mkdtemp(prefix="millrace-queries-"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        hosts, words = [_LOOPBACK] * 3, tuple[str, ...]()
        try:
            network = NodeNetwork([1])
        except NamespacesRefused as error:
            print(f"all workers are on this machine's own network: {error}", flush=True)
        else:
            stack.callback(network.close)
            machine = network.address_of(0)
            hosts, words = [machine, machine, network.address_of(1)], network.enter(1)
        self._broker = EmbeddedProcess(SETTINGS, host=hosts[0])
        stack.callback(self._broker.close)
        self._broker.start()
        servers = self._broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        topics = admin.create_topics([NewTopic(INPUT, PARTITIONS, 1)])
        topics[INPUT].result(HANG_LIMIT_S)
        addresses = list(zip([*hosts, hosts[0]], free_ports(4), strict=True))
        workers = [
            QueriedWorker(n, servers, address, words if n == 2 else (), root, options.plant)
            for n, address in enumerate(addresses)
        ]
        *self._workers, self._guest = workers
        for worker in workers:
            stack.callback(worker.close)
        for worker in self._workers:
            worker.start()
        self.history = History()
        self._load = Load(servers, options.load, self.history, seed)
        self._watch = CommitWatch(servers, self.history)
        self.asker = Asker(addresses, KEYS, options.rate, seed)
        self.troubles: list[tuple[float, str]] = []

    def run(self) -> None:
        """Ask while there is trouble, and collect what was answered."""
        time.sleep(15)  # so that all tasks have run and have standbys
        self.asker.start()
        end_s = time.monotonic() + 60 * self._minutes
        while time.monotonic() < end_s:
            time.sleep(self._random.uniform(4, 8))
            kind = self._random.choice(("kill", "kill", "stop", "leave", "join", "broker"))
            self.troubles.append((time.monotonic(), kind))
            getattr(self, f"_make_{kind}")()
        time.sleep(8)
        self.asker.finish()
        self._watch.finish()
        self._load.finish()
        self.history.sort()

    def _make_kill(self) -> None:
        worker = self._random.choice(self._workers)
        worker.kill()
        time.sleep(self._random.uniform(0.0, 10.0))
        worker.start()

    def _make_stop(self) -> None:
        worker = self._random.choice(self._workers)
        os.kill(worker.pid, signal.SIGSTOP)
        time.sleep(self._random.uniform(1.0, 9.0))
        os.kill(worker.pid, signal.SIGCONT)

    def _make_leave(self) -> None:
        worker = self._random.choice(self._workers)
        worker.end(signal.SIGTERM)
        time.sleep(self._random.uniform(1.0, 4.0))
        worker.start()

    def _make_join(self) -> None:
        """Add a fourth worker, which gets tasks or standbys, and send it away again."""
        self._guest.start()
        time.sleep(self._random.uniform(8.0, 14.0))
        self._guest.end(signal.SIGTERM)

    def _make_broker(self) -> None:
        self._broker.kill()
        time.sleep(self._random.uniform(0.0, 2.0))
        self._broker.start()


def format_report(soak: Soak) -> str:
    """Return the tables of answers and of troubles, in Markdown."""
    asker = soak.asker
    kinds = Counter(each.kind for each in asker.answers)
    total = len(asker.answers) + len(asker.errors)
    span_s = max(each.asked_at_s for each in asker.answers) - asker.answers[0].asked_at_s
    quantiles = statistics.quantiles(asker.latencies_s, n=100)
    lines = [
        f"{total / span_s:.0f} queries a second for {span_s:.0f} s: "
        + ", ".join(f"{count:,} answers to a {kind}" for kind, count in sorted(kinds.items()))
        + f"; {len(asker.errors)} errors ({len(asker.errors) / total:.2%}); "
        f"p50 {quantiles[49] * 1000:.1f} ms, p99 {quantiles[98] * 1000:.0f} ms",
        "",
        "| trouble | times | errors until the next, median | last error after, median | at most |",
        "|---|---|---|---|---|",
    ]
    by_kind: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for number, (at_s, kind) in enumerate(soak.troubles):
        following = soak.troubles[number + 1 :]
        until_s = following[0][0] if following else float("inf")
        ends = [e.ended_at_s for e in asker.errors if at_s <= e.asked_at_s < until_s]
        by_kind[kind].append((len(ends), max(ends, default=at_s) - at_s))
    for kind, found in sorted(by_kind.items()):
        counts, times_s = zip(*found, strict=True)
        lines.append(
            f"| {kind} | {len(found)} | {statistics.median(counts):.0f} | "
            f"{statistics.median(times_s):.1f} s | {max(times_s):.1f} s |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.soak_queries")
    parser.add_argument("--minutes", type=float, default=2, help="how long there is trouble")
    parser.add_argument("--rate", type=int, default=1_000, help="queries a second, at most")
    parser.add_argument("--load", type=int, default=1_000, help="records a second, about")
    parser.add_argument("--plant", default="", choices=["", *PLANTS], help="a bug to be found")
    parser.add_argument("--write", action="store_true", help="write the table of docs/queries.md")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = draw_seed("queries") if options.seed is None else options.seed
    print(f"seed {seed}, {options.minutes:g} minutes of trouble", flush=True)
    with ExitStack() as stack:
        soak = Soak(stack, options, seed)
        soak.run()
    wrong = [(each.kind, text) for each in soak.asker.answers if (text := soak.history.judge(each))]
    report = format_report(soak)
    print(report)
    if options.write:
        told = f"`make soak-queries MINUTES={options.minutes:g}`: {report}"
        write_measured(_PAGE, "make soak-queries", told)
    print("\nreasons of errors:")
    for reason, count in Counter(e.reason[:100] for e in soak.asker.errors).most_common(8):
        print(f"{count:6} {reason}")
    for kind, text in wrong[:20]:
        print(f"{kind}: {text}")
    print(f"{len(wrong)} of {len(soak.asker.answers)} answers are wrong")
    for kind, count in Counter(kind for kind, _ in wrong).most_common():
        print(f"{count:6} {kind}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
