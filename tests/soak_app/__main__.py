"""Run an application under injected failures and check it: `python -m tests.soak_app --minutes 10`.

Several workers run a topology on one broker while records with sequence numbers are written, and
failures are injected one after another (see `trouble`). At the end they stop, the application
catches up, and every output is read and checked: not one record lost, doubled or out of order
within its key. Status 1 if one is, or if a worker gave up. The seed is printed first; it decides
which failures come and when, not when a process gets its turn.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

from confluent_kafka.admin import AdminClient, NewTopic

from streams import serdes
from tests import brokers
from tests.brokers import SETTINGS, Broker, EmbeddedProcess
from tests.clock_shift import ClockShift
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records
from tests.sampling import draw_seed
from tests.soak_app import verdict
from tests.soak_app.load import Load
from tests.soak_app.topology import COPIED, COUNTS, DIGESTS, LINES, REGROUPED
from tests.soak_app.trouble import Trouble
from tests.soak_app.workers import SoakWorker

PARTITIONS = 4
CHECKS = {
    # Days that pass are noticed soon. Idle producers are looked for every ten minutes, as else the
    # load's own might be forgotten while a batch of it is in transit.
    "log.retention.check.interval.ms": "1000",
    "offsets.retention.check.interval.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
}
SECONDS = {
    # On Kafka, whose clock is the machine's, the ids of workers that are idle for seconds expire.
    "transactional.id.expiration.ms": "2000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
}
_CALM_S = (0.5, 6.0)


def committed(servers: str, topic: str) -> Iterator[tuple[str, int]]:
    """Yield every committed record of a topic."""
    for message in records(servers, topic, PARTITIONS):
        yield message.key().decode(), serdes.int64.deserialize(message.value())


class Soak:
    """Represents one run: a broker, its topics, workers, the load."""

    def __init__(self, stack: ExitStack, options: argparse.Namespace, seed: int) -> None:
        self._random = Random(seed)
        self._minutes: float = options.minutes
        directory = Path(tempfile.mkdtemp(prefix="millrace-soak-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        faults = directory / "faults.toml" if options.broker == "embedded" else None
        clock = ClockShift(directory / "shift")
        self._broker = self._start_broker(options.broker, faults, clock)
        stack.callback(self._broker.close)
        self.servers = self._broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": self.servers})
        config = {"retention.ms": "-1"}
        topics = (LINES, COPIED, COUNTS, REGROUPED, DIGESTS)
        new = [NewTopic(topic, PARTITIONS, 1, config=config) for topic in topics]
        for answer in admin.create_topics(new).values():
            answer.result(HANG_LIMIT_S)
        settings = {
            "MILLRACE_PROCESSING_GUARANTEE": options.guarantee,
            "MILLRACE_CLOCK_SHIFT_FILE": str(clock.path),
        }
        self.workers = []
        for number in range(options.workers):
            # The first two share a machine, the others have one each.
            state = directory / f"machine-{max(number, 1)}"
            worker = SoakWorker(f"worker-{number}", self.servers, state, settings)
            stack.callback(self._end, worker, options.logs)
            self.workers.append(worker)
        self._trouble = Trouble(self.workers, self._broker, faults, clock, self._random)
        self._load = Load(self.servers, options.rate, Random(seed), clock.now_ms)

    @staticmethod
    def _start_broker(kind: str, faults: Path | None, clock: ClockShift) -> Broker:
        if faults is None:
            broker = brokers.make(kind, {**SETTINGS, **SECONDS})
        else:
            faults.write_text("")
            options = ("--faults", str(faults), *clock.broker_options)
            broker = EmbeddedProcess({**SETTINGS, **CHECKS}, options=options)
        broker.start()
        return broker

    def run(self) -> list[str]:
        """Run the soak and return what is wrong."""
        self._began = time.monotonic()
        end = self._began + 60 * self._minutes
        while time.monotonic() < end:
            time.sleep(self._random.uniform(*_CALM_S))
            began = time.monotonic()
            kind = self._trouble.make_one()
            print(f"{began - self._began:6.1f} s: {kind}", flush=True)
            self._check_workers()
        self._trouble.end()
        self._load.finish()
        self._catch_up()
        print(f"{time.monotonic() - self._began:6.1f} s: caught up", flush=True)
        statuses = [worker.leave() for worker in self.workers]
        wrong = [
            f"worker {number} ended with {status}"
            for number, status in enumerate(statuses)
            if status
        ]
        made = ", ".join(f"{count} {kind}" for kind, count in sorted(self._trouble.made.items()))
        print(f"{self._load.total:,} records; {made}", flush=True)
        return wrong + self._verdict()

    @staticmethod
    def _end(worker: SoakWorker, logs: Path | None) -> None:
        worker.kill()
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
            shutil.copy(worker.log_path, logs / f"{worker.name}.log")
        worker.close()

    def _check_workers(self) -> None:
        for worker in self.workers:
            if worker.ended is not None:
                raise RuntimeError(f"{worker.name} gave up: {worker.ended}\n{worker.log_tail()}")

    def _catch_up(self) -> None:
        """Wait until the outputs have all that was written, or as much as they ever will."""
        total = self._load.total

        def done() -> bool:
            counts = dict(committed(self.servers, COUNTS)), dict(committed(self.servers, REGROUPED))
            copied = sum(1 for _ in committed(self.servers, COPIED))
            return copied >= total and all(sum(each.values()) >= total for each in counts)

        try:
            wait_until(done, what="the application to catch up")
        except TimeoutError:
            tails = "\n".join(f"{each.name}:\n{each.log_tail()}" for each in self.workers)
            print(f"not caught up after {HANG_LIMIT_S:.0f} s\n{tails}", flush=True)

    def _verdict(self) -> list[str]:
        written = self._load.written
        regrouped = verdict.regrouped(written)
        return [
            *verdict.copied(committed(self.servers, COPIED), written),
            *verdict.counted("counts", committed(self.servers, COUNTS), written),
            *verdict.digested(committed(self.servers, DIGESTS), written),
            *verdict.counted("regrouped", committed(self.servers, REGROUPED), regrouped),
        ]


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.soak_app")
    parser.add_argument("--minutes", type=float, default=2, help="how long there is trouble")
    parser.add_argument("--broker", default="embedded", help="embedded, kafka or HOST:PORT")
    parser.add_argument("--guarantee", default="exactly_once_v2")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--rate", type=int, default=2_000, help="records a second, about")
    parser.add_argument("--logs", type=Path, help="keep the workers' logs in this directory")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = draw_seed("an application") if options.seed is None else options.seed
    print(f"seed {seed}, {options.minutes:g} minutes of trouble on {options.broker}", flush=True)
    with ExitStack() as stack:
        wrong = Soak(stack, options, seed).run()
    print("\n".join(wrong[:20]) if wrong else "nothing lost, doubled or out of order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
