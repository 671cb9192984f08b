"""One trial: topics, the input, a worker on a state directory, and what is left at the end."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from state.memory import MemoryDisk
from state.rocksdb import RocksDisk
from state.store import Checkpoint
from streams import serdes
from streams.runtime.stores import open_store
from streams.topology.nodes import StoreSpec
from tests.crashes import truth
from tests.crashes.topology import build
from tests.crashes.truth import Contents, Given
from tests.processes import ServerProcess, wait_until

PARTITIONS = 2
KEYS = 20
_STEP_MS = 20
_PAUSE_EVERY, _PAUSE_MS = 700, 10_000
_BATCH = 40
_WAIT_S = 60.0


class Trial:
    """Input and results of one application on one broker."""

    def __init__(self, servers: str, application: str, state: Path) -> None:
        self.servers = servers
        self.application = application
        self.source, self.target = f"{application}-in", f"{application}-out"
        self.state = state
        self.given: list[Given] = []
        self._begin_ms = int(time.time()) * 1_000
        admin = AdminClient({"bootstrap.servers": servers})
        new = [NewTopic(topic, PARTITIONS, 1) for topic in (self.source, self.target)]
        for answer in admin.create_topics(new).values():
            answer.result(30)
        app = build(application, self.source, self.target)
        (sub,) = app.topology().subtopologies
        self.specs: dict[str, StoreSpec] = {spec.name: spec for spec in sub.stores}
        self._changelog = app.topology().changelog
        self.output: dict[str, list[int]] = defaultdict(list)
        """Every committed record of the output that was seen so far, by key and in order."""
        self._seen = 0
        self._reader = self._consumer()
        self._reader.assign([TopicPartition(self.target, each, 0) for each in range(PARTITIONS)])
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5}
        )

    def load(self) -> None:
        """Some more records of the input."""
        for number in range(len(self.given), len(self.given) + _BATCH):
            time_ms = self._begin_ms + number * _STEP_MS + number // _PAUSE_EVERY * _PAUSE_MS
            record = Given(f"key-{number % KEYS}", number, time_ms)
            self.given.append(record)
            value = serdes.int64.serialize(record.value)
            self._producer.produce(self.source, value, record.key, timestamp=time_ms)
        assert self._producer.flush(_WAIT_S) == 0

    def wait_for_output(self, unless: Callable[[], bool] = lambda: False) -> None:
        """Until the output has as many records as the input, or `unless` comes true."""
        wait_until(
            lambda: unless() or self._caught_up(),
            timeout_s=_WAIT_S,
            what=lambda: f"{self._seen} of {len(self.given)} records in the output",
        )

    def _caught_up(self) -> bool:
        for message in self._reader.consume(10_000, 0.02):
            assert message.error() is None, message.error()
            self.output[message.key().decode()].append(serdes.int64.deserialize(message.value()))
            self._seen += 1
        return self._seen >= len(self.given)

    def close(self) -> None:
        self._reader.close()

    def stored(self, store: str, expected: Contents) -> Contents:
        """What a store has on disk in all tasks, read while no worker runs."""
        found: Contents = {}
        for path in sorted((self.state / self.application).glob(f"*_*/{store}")):
            opened = open_store(self.specs[store], RocksDisk(path))
            found |= truth.contents(store, opened, expected)
            opened.close()
        return found

    def logged(self, store: str, expected: Contents) -> Contents:
        """What a store holds that is replayed from the committed records of its changelog."""
        found: Contents = {}
        for partition in range(PARTITIONS):
            messages = self._committed(self._changelog(store), partition)
            entries = [(m.key(), m.value(), m.timestamp()[1]) for m in messages]
            opened = open_store(self.specs[store], MemoryDisk())
            opened.replay(entries, Checkpoint(0, ""))
            found |= truth.contents(store, opened, expected)
        return found

    def _committed(self, topic: str, partition: int) -> Iterator[Any]:
        consumer = self._consumer(**{"enable.partition.eof": True})
        consumer.assign([TopicPartition(topic, partition, 0)])
        try:
            while True:
                message = consumer.poll(_WAIT_S)
                assert message is not None, f"no answer from the broker in {_WAIT_S:.0f} s"
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    return
                yield message
        finally:
            consumer.close()

    def _consumer(self, **settings: Any) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": f"{self.application}-reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "metadata.recovery.strategy": "none",
                **settings,
            }
        )


class CrashWorker(ServerProcess):
    """A worker process of a trial."""

    def __init__(self, trial: Trial, guarantee: str = "exactly_once_v2") -> None:
        super().__init__("crash-worker")
        self._replayed = self.directory / "replayed.json"
        self._command = [sys.executable, "-m", "tests.crashes.worker"]
        for name, value in {
            "servers": trial.servers,
            "application": trial.application,
            "source": trial.source,
            "target": trial.target,
            "guarantee": guarantee,
            "state": str(trial.state),
            "replayed": str(self._replayed),
        }.items():
            self._command += [f"--{name}", value]

    def start(
        self, *, kill_at: str | None = None, number: int = 1, victim: int | None = None
    ) -> None:
        extra = [] if kill_at is None else ["--kill-at", kill_at, "--kill-number", str(number)]
        extra += [] if victim is None else ["--victim", str(victim)]
        self.spawn([*self._command, *extra])

    def finish(self) -> dict[str, int]:
        """SIGTERM and a clean end; how many records were replayed into each store."""
        self.stop()
        assert self.ended == 0, self.log_tail()
        replayed: dict[str, int] = json.loads(self._replayed.read_text())
        return replayed
