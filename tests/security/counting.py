"""Run an application on a secured Kafka that counts and copies records, and check that it is exact.

Records come, and results are read, through the PLAINTEXT listener, so that nothing but the
application depends on the security under test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streams import App, serdes
from streams.processes.running import RunningApp
from tests.kafka.secured.server import SecuredKafka
from tests.processes import HANG_LIMIT_S, wait_until

PARTITIONS = 2
KEYS = 7
HEARTBEAT_MS = 500


class CountingApplication:
    """Represents an application with its topics; `loaded` counts the records of each key."""

    def __init__(self, kafka: SecuredKafka, name: str, state_dir: Path) -> None:
        self.name = name
        self.loaded: Counter[str] = Counter()
        self._state_dir = state_dir
        self._servers = kafka.listener_servers("PLAINTEXT")
        self._seen: Counter[str] = Counter()
        self._copied: list[str] = []
        self._loaded_values: list[str] = []
        self._reader: Consumer | None = None
        topics = [NewTopic(topic, PARTITIONS, 1) for topic in self._topics()]
        admin = AdminClient({"bootstrap.servers": self._servers})
        for future in admin.create_topics(topics).values():
            future.result(HANG_LIMIT_S)
        self._producer = Producer({"bootstrap.servers": self._servers})

    def _topics(self) -> tuple[str, str, str]:
        return f"{self.name}-in", f"{self.name}-counts", f"{self.name}-copies"

    def build(self, access: Mapping[str, Any], **settings: Any) -> App:
        """Return the application with the connection that `access` describes."""
        connection = dict(access)
        servers = connection.pop("bootstrap.servers")
        app = App(
            self.name,
            **{
                "bootstrap_servers": servers,
                "connection": connection,
                "state_dir": self._state_dir,
                "commit_interval_ms": 100,
                "heartbeat_interval_ms": HEARTBEAT_MS,
                **settings,
            },
        )
        source, counts, copies = self._topics()
        stream = app.stream(source, key=serdes.string, value=serdes.string)
        stream.to(copies)
        stream.group_by_key().count(store="counts").to_stream().to(counts)
        return app

    def start(self, access: Mapping[str, Any], **settings: Any) -> RunningApp:
        """Start the application, and wait until it runs."""
        running = self.build(access, **settings).start()
        try:
            running.wait_for("RUNNING", HANG_LIMIT_S)
        except BaseException:
            running.close()
            raise
        return running

    def load(self, count: int) -> None:
        """Write so many records to the input."""
        for _ in range(count):
            number = len(self._loaded_values)
            key, value = f"key {number % KEYS}", f"value {number}"
            self._producer.produce(self._topics()[0], value, key)
            self._loaded_values.append(value)
            self.loaded[key] += 1
        assert self._producer.flush(HANG_LIMIT_S) == 0, "no answer to records"

    def load_until(self, is_over: Callable[[], bool], *, what: str | Callable[[], str]) -> None:
        """Write records to the input until `is_over()` is true."""

        def load_some() -> bool:
            self.load(20)
            return is_over()

        wait_until(load_some, what=what)

    def wait_until_counted(self) -> None:
        """Wait until all records that were loaded are counted and copied."""
        wait_until(
            lambda: self.read_counts() == self.loaded and len(self._copied) >= self.loaded.total(),
            what=lambda: f"{self._seen} of {self.loaded}, {len(self._copied)} copied",
        )

    def check_exact(self) -> None:
        """Check that what is committed is each loaded record once, counted and copied."""
        self.wait_until_counted()
        assert sorted(self._copied) == sorted(self._loaded_values)

    def check_nothing_doubled(self) -> None:
        """Check of an application that has ended that each record has taken effect at most once."""
        wait_until(
            lambda: self.read_counts().total() == len(self._copied), what="counts without copies"
        )
        assert not Counter(self._copied) - Counter(self._loaded_values)

    def count_copies(self) -> int:
        """Return how many copies are committed."""
        self.read_counts()
        return len(self._copied)

    def read_counts(self) -> Counter[str]:
        """Return the latest committed count of each key."""
        if self._reader is None:
            self._reader = Consumer(
                {
                    "bootstrap.servers": self._servers,
                    "group.id": "unused",
                    "enable.auto.commit": "false",
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                }
            )
            self._reader.assign(
                [TopicPartition(t, p, 0) for t in self._topics()[1:] for p in range(PARTITIONS)]
            )
        for message in self._reader.consume(1_000, 0.02):
            if message.error() is not None:
                continue
            if message.topic() == self._topics()[2]:
                self._copied.append(message.value().decode())
            else:
                self._seen[message.key().decode()] = int.from_bytes(message.value(), "big")
        return self._seen

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
