"""Run one trial: topics, the input, a worker on a state directory, and what is left at the end."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from state.memory import MemoryDisk
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from streams import serdes
from streams.graph.nodes import StoreSpec
from streams.runtime.tasks.store_opening import open_store
from tests.crashes import truth
from tests.crashes.topology import build
from tests.crashes.truth import Contents, Given
from tests.processes import HANG_LIMIT_S, ServerProcess, wait_until
from tests.reading import FETCH_WAIT_MS, final_records

PARTITIONS = 2
KEYS = 20
_STEP_MS = 20
_PAUSE_EVERY, _PAUSE_MS = 700, 10_000
BATCH = 40
_SOCKET_TIMEOUT_MS = 10_000
"""For how long a node that is cut off holds up what is loaded and read."""

Entry = tuple[bytes, bytes | None, int]
"""Key, value and timestamp of a record."""


class Trial:
    """Holds the input and results of one application on one broker."""

    def __init__(
        self,
        servers: str,
        application: str,
        state: Path,
        *,
        begin_ms: int | None = None,
        topic_settings: Mapping[str, str] | None = None,
        replicas: int = 1,
    ) -> None:
        """Create the topics, with `topic_settings`; the input's timestamps begin at `begin_ms`.

        `replicas`: on how many brokers each partition is.
        """
        self.servers = servers
        self.application = application
        self.source, self.target = f"{application}-in", f"{application}-out"
        self.regrouped = f"{self.target}-regrouped"
        self.state = state
        self.given: list[Given] = []
        self._begin_ms = int(time.time()) * 1_000 if begin_ms is None else begin_ms
        admin = AdminClient({"bootstrap.servers": servers})
        new = [
            NewTopic(topic, PARTITIONS, replicas, config=dict(topic_settings or {}))
            for topic in (self.source, self.target, self.regrouped)
        ]
        for answer in admin.create_topics(new).values():
            answer.result(HANG_LIMIT_S)
        topology = build(application, self.source, self.target).topology()
        self.specs: dict[str, StoreSpec] = {
            spec.name: spec for sub in topology.subtopologies for spec in sub.stores
        }
        self.changelog = topology.restore_topic_of
        self.output: dict[str, list[int]] = defaultdict(list)
        """Every committed record of the output that was seen so far, by key and in order."""
        self.counts: dict[str, list[int]] = defaultdict(list)
        """The same of the counts by remainder."""
        self._seen = 0
        self._connect()

    def _connect(self) -> None:
        """Create the clients that load the input, and read the outputs from their beginning."""
        self._reader = self._consumer()
        outputs = (self.target, self.regrouped)
        self._reader.assign(
            [TopicPartition(topic, each, 0) for topic in outputs for each in range(PARTITIONS)]
        )
        self._producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "socket.timeout.ms": _SOCKET_TIMEOUT_MS,
                "enable.idempotence": True,
                "linger.ms": 5,
            }
        )

    def change_servers(self, servers: str) -> None:
        """Go on with brokers that have other addresses, once all that was loaded is delivered."""
        self._reader.close()
        self.servers, self._seen = servers, 0
        self.output.clear()
        self.counts.clear()
        self._connect()

    def load(self, unless: Callable[[], bool] = lambda: False) -> None:
        """Load some more records of the input, and wait for their delivery, or until `unless`.

        What is on its way then is delivered with the next load.
        """
        for number in range(len(self.given), len(self.given) + BATCH):
            time_ms = self._begin_ms + number * _STEP_MS + number // _PAUSE_EVERY * _PAUSE_MS
            record = Given(f"key-{number % KEYS}", number, time_ms)
            self.given.append(record)
            value = serdes.int64.serialize(record.value)
            self._producer.produce(self.source, value, record.key, timestamp=time_ms)
        self.deliver(unless)

    def deliver(self, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait until all that is loaded is delivered, or until `unless`."""
        wait_until(
            lambda: self._producer.flush(0.1) == 0 or unless(),
            what="the records are not delivered",
        )

    def input_left(self) -> int:
        """Return how many records of the input have not expired."""
        partitions = [TopicPartition(self.source, each) for each in range(PARTITIONS)]
        watermarks = [self._reader.get_watermark_offsets(each, HANG_LIMIT_S) for each in partitions]
        return sum(end - first for first, end in watermarks)

    def produce_again(self) -> None:
        """Produce the last total of a key once more, behind all that is in the output."""
        key, totals = next(iter(self.output.items()))
        self._producer.produce(self.target, serdes.int64.serialize(totals[-1]), key)
        assert self._producer.flush(HANG_LIMIT_S) == 0

    def wait_for_output(self, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait until the output has as many records as the input, or `unless` comes true."""
        wait_until(
            lambda: unless() or self._caught_up(),
            what=lambda: (
                f"{self._seen} of {len(self.given)} records in the output, {self._counted} counted"
            ),
        )

    def read_output(self) -> dict[str, list[int]]:
        """Return the output, with what has come since the last call."""
        self._caught_up()
        return self.output

    def read_whole_output(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """Return the totals by key and the counts by remainder, read from beginning to end.

        No worker may run, so that nothing comes behind them.
        """
        found: list[dict[str, list[int]]] = []
        for topic in (self.target, self.regrouped):
            values: dict[str, list[int]] = defaultdict(list)
            for message in final_records(self.servers, topic, PARTITIONS):
                values[message.key().decode()].append(serdes.int64.deserialize(message.value()))
            found.append(dict(values))
        totals, counts = found
        return totals, counts

    def _caught_up(self) -> bool:
        for message in self._reader.consume(10_000, 0.02):
            assert message.error() is None, message.error()
            to = self.output if message.topic() == self.target else self.counts
            to[message.key().decode()].append(serdes.int64.deserialize(message.value()))
            self._seen += message.topic() == self.target
        return self._seen >= len(self.given) and self._counted >= len(self.given)

    @property
    def _counted(self) -> int:
        return sum(counts[-1] for counts in self.counts.values())

    def close(self) -> None:
        self._reader.close()

    def stored(self, store: str, expected: Contents) -> Contents:
        """Return what a store has on disk in all tasks, read while no worker runs."""
        found: Contents = {}
        for path in sorted((self.state / self.application).glob(f"*_*/{store}")):
            opened = open_store(self.specs[store], RocksDisk(path))
            found |= truth.contents(store, opened, expected)
            opened.close()
        return found

    def changelogs(self) -> dict[str, list[list[Entry]]]:
        """Return the committed records of every store's changelog, by partition."""
        topics = {self.changelog(store): store for store in self.specs}
        found: dict[str, list[list[Entry]]] = {
            store: [[] for _ in range(PARTITIONS)] for store in self.specs
        }
        # Changelogs begin where the stores were written again: what was before that is deleted.
        consumer = self._consumer(
            **{
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": FETCH_WAIT_MS,
            }
        )
        consumer.assign([TopicPartition(t, each, 0) for t in topics for each in range(PARTITIONS)])
        left = len(topics) * PARTITIONS
        deadline = time.monotonic() + HANG_LIMIT_S
        try:
            while left:
                assert time.monotonic() < deadline, f"{left} changelogs are not read to their ends"
                for message in consumer.consume(10_000, 0.02):
                    error = message.error()
                    if error is not None:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        left -= 1
                        continue
                    entries = found[topics[message.topic()]][message.partition()]
                    entries.append((message.key(), message.value(), message.timestamp()[1]))
        finally:
            consumer.close()
        return found

    def replay(self, store: str, log: list[list[Entry]], expected: Contents) -> Contents:
        """Return what a store holds that is replayed from its changelog."""
        found: Contents = {}
        for entries in log:
            opened = open_store(self.specs[store], MemoryDisk())
            opened.replay_changelog(entries, StoreCheckpoint(0, ""))
            found |= truth.contents(store, opened, expected)
        return found

    def _consumer(self, **settings: Any) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "socket.timeout.ms": _SOCKET_TIMEOUT_MS,
                "group.id": f"{self.application}-reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "metadata.recovery.strategy": "none",
                **settings,
            }
        )


class Place(Protocol):
    """Tells a worker where it works."""

    servers: str
    application: str
    source: str
    target: str
    state: Path


class CrashWorker(ServerProcess):
    """Represents a worker process of a trial."""

    def __init__(
        self,
        trial: Place,
        guarantee: str = "exactly_once_v2",
        state: Path | None = None,
        servers: str | None = None,
        **more: object,
    ) -> None:
        super().__init__("crash-worker")
        self._replayed = self.directory / "replayed.json"
        self._counters = self.directory / "counters.json"
        self._victim = self.directory / "victim"
        self.began_at = 0
        """Where in the log the last start begins."""
        self._command = [sys.executable, "-m", "tests.crashes.worker"]
        for name, value in {
            "servers": servers or trial.servers,
            "application": trial.application,
            "source": trial.source,
            "target": trial.target,
            "guarantee": guarantee,
            "state": state or trial.state,
            "replayed": self._replayed,
            "counters": self._counters,
            "victim": self._victim,
            **more,
        }.items():
            self._command += [f"--{name}", str(value)]

    def start(self, *points: str, number: str = "SIGKILL") -> None:
        """Start the worker; at each of the `points` (STEP:TIMES) it signals its current aim."""
        self._victim.unlink(missing_ok=True)
        self.began_at = self.spawn([*self._command, "--at", *points, "--signal", number])

    def aim_at(self, process: int) -> None:
        """Set the process that is signalled at the next point, which is looked for from now on."""
        fresh = self._victim.with_suffix(".new")
        fresh.write_text(str(process))
        fresh.replace(self._victim)

    @property
    def replayed(self) -> dict[str, int]:
        """Return how many records were replayed into each store since the last start."""
        records: dict[str, int] = json.loads(self._replayed.read_text())
        return records

    def finish(self) -> dict[str, Any]:
        """End the worker with SIGTERM, check that it ended cleanly, and return its counters."""
        self.stop()
        assert self.ended == 0, self.log_tail()
        counters: dict[str, Any] = json.loads(self._counters.read_text())
        return counters
