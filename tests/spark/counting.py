"""Run a word count to the end of its lines, for errors to be planted in its topics."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from streams import App, serdes
from streams.spark import Cut, read_cut
from tests.changelog_offsets import account_for_state
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until

PARTITIONS = 2
LINES = ["the mill turns", "the race runs", "a mill race", "turns and turns"]


class Counting:
    """Represents the word count of the examples, in topics of its own."""

    def __init__(
        self, servers: str, name: str, state: Path, *, made: bool = False, **settings: Any
    ) -> None:
        """Create the topics, unless they are `made` already."""
        self.servers = servers
        self.lines, self.out = f"{name}-lines", f"{name}-out"
        self.repartition = f"{name}-counts-repartition"
        self.changelog = f"{name}-counts-changelog"
        with Client(servers) as client:
            for topic in () if made else (self.lines, self.out):
                create_topic(client, topic, partitions=PARTITIONS)
        defaults: dict[str, Any] = {
            "bootstrap_servers": servers,
            "commit_interval_ms": 20,
            "repartition_purge_interval_ms": 3_600_000,
        }
        self.app = App(name, state_dir=state, **(defaults | settings))
        (
            self.app.stream(self.lines, key=serdes.string, value=serdes.string)
            .flat_map_values(str.split)
            .group_by(lambda _, word: word, key=serdes.string)
            .count(store="counts")
            .to_stream()
            .to(self.out)
        )
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 1})
        self._fed = 0

    def feed(self, *lines: str) -> None:
        """Write lines, each to the next partition."""
        for line in lines:
            self.write(self.lines, str(self._fed).encode(), line.encode(), self._fed % PARTITIONS)
            self._fed += 1

    @contextmanager
    def being_fed(self) -> Iterator[None]:
        """Write lines all the time, until the block ends."""
        stop = threading.Event()

        def feed() -> None:
            while not stop.wait(0.02):
                self.feed(*LINES)

        feeding = threading.Thread(target=feed)
        feeding.start()
        try:
            yield
        finally:
            stop.set()
            feeding.join(HANG_LIMIT_S)

    def write(self, topic: str, key: bytes, value: bytes, partition: int, at_ms: int = 0) -> int:
        """Write a record of a producer that isn't the application's, and return its offset."""
        where: list[int] = []

        def delivered(error: object, message: Any) -> None:
            assert error is None, error
            where.append(message.offset())

        self._producer.produce(
            topic, value, key, partition, on_delivery=delivered, timestamp=at_ms or 1
        )
        assert self._producer.flush(HANG_LIMIT_S) == 0
        return where[0]

    def change_state(self, word: str, count: int, partition: int) -> int:
        """Write another count of a word into the changelog, and return the record's offset.

        The application is down. Its committed offsets name the end of the changelog after that, as
        if they had been committed with the record: it would refuse to start on a record of which
        they don't know.
        """
        at = self.write(self.changelog, word.encode(), serdes.int64.serialize(count), partition)
        account_for_state(self.servers, self.app.topology())
        return at

    def run(self) -> Cut:
        """Run until all lines are counted, stop, and return the cut after it."""
        with self.app.start():
            wait_until(self._is_drained, what="all lines to be counted")
        return read_cut(self.app)

    def _is_drained(self) -> bool:
        try:
            cut = read_cut(self.app)
        except Exception:  # nothing is committed yet
            return False
        ends = cut.ends
        read = sum(at for p, at in cut.offsets.items() if p.topic == self.lines)
        return (
            read >= self._fed
            and ends is not None
            and all(
                at >= ends[p] - 1 for p, at in cut.offsets.items() if p.topic == self.repartition
            )
        )

    def last(self, topic: str, word: str) -> Any:
        """Return the last record of a key in a topic."""
        reader = Consumer({"bootstrap.servers": self.servers, "group.id": "reader"})
        found = None
        try:
            for number in range(PARTITIONS):
                partition = TopicPartition(topic, number, 0)
                _, end = reader.get_watermark_offsets(partition, HANG_LIMIT_S)
                reader.assign([partition])
                while reader.position([partition])[0].offset < end:
                    message = reader.poll(0.2)
                    if message is not None and message.key() == word.encode():
                        found = message
        finally:
            reader.close()
        assert found is not None, f"{word} is not in {topic}"
        return found

    def skip(self, partition: int, offset: int) -> None:
        """Commit the offset behind a record of `lines` that nobody has read.

        The application is down; what was committed beside it stays.
        """
        assert self._commit(partition, offset + 1) == offset

    def read_again(self, partition: int, offset: int) -> None:
        """Commit an offset of `lines` from which on they are read again."""
        assert self._commit(partition, offset) > offset

    def _commit(self, partition: int, offset: int) -> int:
        """Commit an offset and return what was committed before."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        group = self.app.application_id
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(self.lines, partition)])
        (answer,) = admin.list_consumer_group_offsets([asked]).values()
        (held,) = answer.result(HANG_LIMIT_S).topic_partitions
        to = TopicPartition(self.lines, partition, offset, metadata=held.metadata)
        moved = ConsumerGroupTopicPartitions(group, [to])
        (answer,) = admin.alter_consumer_group_offsets([moved]).values()
        (done,) = answer.result(HANG_LIMIT_S).topic_partitions
        assert done.error is None, done.error
        return int(held.offset)

    def end_of(self, topic: str, partition: int) -> int:
        reader = Consumer({"bootstrap.servers": self.servers, "group.id": "reader"})
        try:
            return int(
                reader.get_watermark_offsets(TopicPartition(topic, partition), HANG_LIMIT_S)[1]
            )
        finally:
            reader.close()
