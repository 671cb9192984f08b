"""Drive a broker and workers for the integration tests: load, wait, read back."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from state.rocksdb import RocksDisk
from tests.processes import HANG_LIMIT_S, ServerProcess, wait_until
from tests.reading import final_records, records

PARTITIONS = 3
KEYS = 50


class Pair(NamedTuple):
    """Holds a record as it was read back."""

    key: str
    value: bytes
    partition: int


class Topics:
    """Holds the topics of one test on one broker."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers = servers
        self.application = name
        self.source = f"{name}-in"
        self.target = f"{name}-out"
        self.truth: Counter[str] = Counter()
        self.create(self.source, self.target)

    def create(self, *topics: str, partitions: int = PARTITIONS) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        new = [NewTopic(topic, partitions, 1) for topic in topics]
        for answer in admin.create_topics(new).values():
            answer.result(HANG_LIMIT_S)
        # With KRaft a busy broker lists them a moment after the controller has answered.
        wait_until(
            lambda: admin.list_topics(timeout=HANG_LIMIT_S).topics.keys() >= {*topics},
            what=f"{topics} to be listed",
        )

    def list_names(self) -> list[str]:
        """Return the names of the application's topics that are on the broker."""
        found = AdminClient({"bootstrap.servers": self.servers}).list_topics(timeout=HANG_LIMIT_S)
        return [name for name in found.topics if name.startswith(f"{self.application}-")]

    def delete(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.delete_topics([topic])[topic].result(HANG_LIMIT_S)

    def make_again(self, topic: str, partitions: int = PARTITIONS) -> None:
        """Delete a topic and create it again at once, as soon as the broker lets."""
        self.delete(topic)

        def is_created() -> bool:
            try:
                self.create(topic, partitions=partitions)
            except KafkaException:  # the deletion goes on
                return False
            return True

        wait_until(is_created, what=f"{topic} can't be created again")

    def load(self, records: int) -> None:
        """Write as many `records` with known keys and different values."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5})
        begin = self.truth.total()
        for number in range(begin, begin + records):
            key = f"key-{number % KEYS}"
            producer.produce(self.source, f"value {number}", key)
            self.truth[key] += 1
        assert producer.flush(HANG_LIMIT_S) == 0

    def load_keys(self, topic: str, keys: str) -> None:
        """Write one record for each of the letters into another input of the application."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5})
        for key in keys:
            producer.produce(f"{self.application}-{topic}", f"value of {key}", key)
        assert producer.flush(HANG_LIMIT_S) == 0

    def wait_for_keys(self, keys: Collection[str]) -> None:
        """Wait until the output has a record of each of the keys."""
        found: set[str] = set()

        def all_there() -> bool:
            found.update(pair.key for pair in self.committed())
            return found >= set(keys)

        wait_until(all_there, what=lambda: f"missing {set(keys) - found}")

    @property
    def loaded(self) -> int:
        """Return how many records have been loaded."""
        return self.truth.total()

    def committed(self, topic: str | None = None) -> Iterator[Pair]:
        """Yield the records of the output, or of another topic, that are committed now."""
        for message in self.messages(topic or self.target):
            yield Pair(message.key().decode(), message.value(), message.partition())

    def final(self) -> Iterator[Pair]:
        """Yield all committed records of the output to its very end, once no worker runs."""
        for message in final_records(self.servers, self.target, PARTITIONS):
            yield Pair(message.key().decode(), message.value(), message.partition())

    def find_ends(self, topic: str) -> list[int]:
        """Return the high watermark of each partition of a topic."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "ends"})
        try:
            partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            return [consumer.get_watermark_offsets(p, HANG_LIMIT_S)[1] for p in partitions]
        finally:
            consumer.close()

    def messages(self, topic: str) -> Iterator[Any]:
        """Yield committed records as the consumer returns them."""
        return records(self.servers, topic, PARTITIONS)

    def counts(self) -> Counter[str]:
        """Return the latest count of each key in the output."""
        return Counter({p.key: int.from_bytes(p.value, "big") for p in self.committed()})

    def wait_for_counts(self, total: int) -> Counter[str]:
        """Wait until the counts sum up to `total` at least, and return them."""
        found: Counter[str] = Counter()

        def enough() -> bool:
            nonlocal found
            found = self.counts()
            return found.total() >= total

        wait_until(enough, what=lambda: f"{found.total()} of {total}")
        return found

    def wait_for_records(self, count: int) -> list[Pair]:
        """Wait until the output has `count` records at least, and return it."""
        found: list[Pair] = []

        def enough() -> bool:
            found[:] = self.committed()
            return len(found) >= count

        wait_until(enough, what=lambda: f"{len(found)} of {count}")
        return found


class Worker(ServerProcess):
    """Represents a worker process on a state directory, which outlives it."""

    def __init__(
        self, topics: Topics, state: Path, *, kind: str, guarantee: str, session_timeout_ms: int
    ) -> None:
        super().__init__("worker")
        self.counters_file = self.directory / "counters.json"
        self.prefix: tuple[str, ...] = ()
        """The command that the worker's own is an argument of, such as `ip netns exec`."""
        self._began_at = 0
        self._command = [sys.executable, "-m", "tests.integration.worker"]
        for name, value in {
            "servers": topics.servers,
            "application": topics.application,
            "source": topics.source,
            "target": topics.target,
            "kind": kind,
            "guarantee": guarantee,
            "session": str(session_timeout_ms),
            "state": str(state),
            "counters": str(self.counters_file),
        }.items():
            self._command += [f"--{name}", value]

    def change_kind(self, kind: str) -> None:
        """Let the next start run another kind of application, as after an upgrade."""
        self._command[self._command.index("--kind") + 1] = kind

    def start(self, *more: str, kill_at: str | None = None, kill_commit: int = 1) -> None:
        extra = [] if kill_at is None else ["--kill-at", kill_at, "--kill-commit", str(kill_commit)]
        self._began_at = self.spawn([*self.prefix, *self._command, *extra, *more])

    @property
    def is_up(self) -> bool:
        """Return whether the last start has come to the application: SIGTERM ends it cleanly then.

        Python is ended by it at once while it imports modules, before anything is logged.
        """
        return bool(self.log_since(self._began_at))

    def load_until_killed(self, topics: Topics) -> None:
        """Load records bit by bit until the worker gives itself SIGKILL.

        So there are commits; any other end is a failure.
        """
        process = self._process
        assert process is not None
        deadline = time.monotonic() + HANG_LIMIT_S
        while process.poll() is None:
            assert time.monotonic() < deadline, f"not killed\n{self.log_tail()}"
            topics.load(200)
        assert process.returncode == -9, self.log_tail()

    def finish(self) -> dict[str, int]:
        """End the worker with SIGTERM, check that it ended cleanly, and return its counters.

        One that was started a moment ago may have had nothing to do, and be importing modules yet.
        """
        wait_until(lambda: self.is_up or self.ended is not None, what="the start of the worker")
        self.stop()
        assert self._process is not None
        assert self._process.returncode == 0, self.log_tail()
        counters: dict[str, int] = json.loads(self.counters_file.read_text())
        return counters


class Command(ServerProcess):
    """Runs a command in a directory."""

    def __init__(self, arguments: list[str], directory: Path, **environment: str) -> None:
        super().__init__("command")
        paths = {"PYTHONPATH": f"{Path.cwd()}:{directory}"}
        self.spawn([sys.executable, *arguments], {**paths, **environment})

    @property
    def status(self) -> int | None:
        assert self._process is not None
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send the signal, and wait for nothing."""
        os.kill(self.pid, number)

    def wait_for_end(self) -> int:
        """Wait until the process has ended and return its status. Raises TimeoutError."""
        wait_until(lambda: self.status is not None, what=self.log_tail)
        assert self.status is not None
        return self.status


def stored_counts(state: Path, application: str, store: str = "counts") -> Counter[str]:
    """Return what the stores of all tasks hold on disk, read while no worker runs."""
    counts: Counter[str] = Counter()
    for path in sorted((state / application).glob(f"*_*/{store}")):
        disk = RocksDisk(path)
        for key, value in disk.range(None, None):
            counts[key.decode()] += int.from_bytes(value[8:], "big")
        disk.close()
    return counts
