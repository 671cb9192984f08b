"""Write the demo's lines, and compare the counts with the files, with a plain Kafka client."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from examples.demo.corpus import Line
from examples.demo.processes import DemoFailed
from millrace import serdes
from streams.common.topic_partitions import Partition
from streams.membership.connection import ConnectionLost
from streams.membership.group_offsets import fetch_group_offsets
from streams.runtime.clients import call_with_retries
from streams.spark.source.broker_access import BrokerAccess

PARTITIONS = 4
WAIT_S = 30.0
# librdkafka would log every attempt to reach the broker that was just killed to the terminal.
_LOG = logging.getLogger("examples.demo.kafka")
for _quiet in (_LOG, logging.getLogger("streams.runtime.clients.librdkafka")):
    _quiet.addHandler(logging.NullHandler())
    _quiet.propagate = False


class Verdict(NamedTuple):
    """Represents how the counts differ from the words that are in the files."""

    counted: int
    missing: int
    twice: int
    example: str

    @property
    def exact(self) -> bool:
        """Return whether every word was counted exactly as often as it occurs in the files."""
        return not self.missing and not self.twice


def compare(truth: Counter[str], counts: Counter[str]) -> Verdict:
    """Compare the counts of all words with the true counts."""
    off = {word: counts[word] - truth[word] for word in truth.keys() | counts.keys()}
    worst = max(off, key=lambda word: abs(off[word]))
    return Verdict(
        counted=counts.total(),
        missing=-sum(difference for difference in off.values() if difference < 0),
        twice=sum(difference for difference in off.values() if difference > 0),
        example=f"{worst!r}: {counts[worst]} counted, {truth[worst]} in the files",
    )


class WordCountTopics:
    """Manages the input and output topics of one run on one broker."""

    def __init__(self, access: BrokerAccess, suffix: str, *, wait_s: float = WAIT_S) -> None:
        self._access = access
        self._wait_s = wait_s
        self._settings = access.client_settings()
        self._admin = access.create_admin(wait_s, retry_s=wait_s)
        self._group = f"word-count{suffix}"
        self._lines = f"lines{suffix}"
        self._counts = f"counts-by-word{suffix}"
        self._repartition = f"{self._group}-counts-repartition"
        self._changelog = f"{self._group}-counts-changelog"

    def create_topics(self) -> None:
        """Create the input and the output topic, and wait until they have leaders.

        Raises ConfigError if no broker answers, OutcomeUnknown if they are not there in time.
        """
        self._admin.fetch_partition_counts_at_start(10)
        self._admin.create_topics(dict.fromkeys((self._lines, self._counts), PARTITIONS), {}, -1)

    def delete_topics(self) -> str:
        """Delete the topics of the run; return why that failed, or an empty text.

        Somebody else's broker is left as it was.
        """
        topics = [self._lines, self._counts, self._repartition, self._changelog]
        admin = AdminClient(
            self._settings, logger=_LOG
        )  # Kept in a name: its requests end with it.
        left = []
        for topic, answer in admin.delete_topics(topics).items():
            try:
                answer.result(self._wait_s)
            except TimeoutError:
                left.append(f"{topic}: no answer in {self._wait_s:g} s")
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    left.append(f"{topic}: {error.args[0].str()}")
        return "; ".join(left)

    def load(self, lines: list[Line], advanced: Callable[[int], None]) -> None:
        """Write all lines to the input topic by file. Raises DemoFailed if one is not delivered."""
        failed: list[str] = []

        def note_failure(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failed.append(error.str())

        producer = Producer(
            {
                **self._settings,
                "enable.idempotence": True,
                "linger.ms": 50,
                "queue.buffering.max.messages": 1_000_000,
                "delivery.report.only.error": True,
                "on_delivery": note_failure,
            },
            logger=_LOG,
        )
        for number, (file, text) in enumerate(lines):
            producer.produce(self._lines, text, file)
            if number % 10_000 == 0:
                producer.poll(0)
                advanced(number)
        if producer.flush(60) or failed:
            raise DemoFailed(f"lines were not delivered: {sorted(set(failed))}")
        advanced(len(lines))

    def words_written(self) -> int:
        """Return how many words are in the repartition topic by now, committed or not."""
        if self._repartition not in self._admin.fetch_partition_counts():
            return 0  # The first worker is about to create it.
        partitions = [Partition(self._repartition, number) for number in range(PARTITIONS)]
        return sum(self._admin.fetch_latest_offsets(partitions).values())

    def drained(self) -> bool:
        """Return whether the application has processed every committed record of its topics."""
        partitions = [
            Partition(topic, number)
            for topic in (self._lines, self._repartition)
            for number in range(PARTITIONS)
        ]
        found = call_with_retries(
            lambda _: fetch_group_offsets(self._access.open_connection, self._group, partitions),
            self._wait_s,
            ConnectionLost,
        )
        if found.pending:  # A transaction is about to commit the offsets.
            return False
        committed = [
            TopicPartition(*p, found.offsets[p].offset if p in found.offsets else 0)
            for p in partitions
        ]
        return next(self._read_committed(committed), None) is None

    def read_final_counts(self) -> Counter[str]:
        """Read the output topic from its start, and return the last count of each word."""
        start = [TopicPartition(self._counts, number, 0) for number in range(PARTITIONS)]
        decode_word, decode_count = serdes.string.deserialize, serdes.int64.deserialize
        return Counter(
            {decode_word(m.key()): decode_count(m.value()) for m in self._read_committed(start)}
        )

    def _read_committed(self, positions: list[TopicPartition]) -> Iterator[Message]:
        """Yield the committed records from given positions to the ends of their partitions."""
        reader = Consumer(
            {
                **self._settings,
                "group.id": f"{self._group}-reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            },
            logger=_LOG,
        )
        try:
            reader.assign(positions)
            left, deadline_s = len(positions), time.monotonic() + self._wait_s
            while left:
                message = reader.poll(self._wait_s)
                error = None if message is None else message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    left -= 1
                elif message is not None and error is None:
                    yield message
                elif time.monotonic() >= deadline_s:
                    why = "" if error is None else f": {error.str()}"
                    servers = self._access.bootstrap_servers
                    raise DemoFailed(f"no answer from {servers} in {self._wait_s:g} s{why}")
                else:  # Brokers come and go; librdkafka reports it and tries again.
                    continue
                deadline_s = time.monotonic() + self._wait_s
        finally:
            reader.close()


class Follower:
    """Follows the committed records of the output topic, and keeps the last count of each word."""

    def __init__(self, access: BrokerAccess, suffix: str) -> None:
        self.latest: dict[str, int] = {}
        self.counted = 0
        self._stop = threading.Event()
        self._consumer = Consumer(
            {
                **access.client_settings(),
                "group.id": f"word-count{suffix}-follower",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            },
            logger=_LOG,
        )
        topic = f"counts-by-word{suffix}"
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
        self._thread = threading.Thread(target=self._follow_counts, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop following and close the consumer."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _follow_counts(self) -> None:
        decode_word, decode_count = serdes.string.deserialize, serdes.int64.deserialize
        while not self._stop.is_set():
            for message in self._consumer.consume(10_000, 0.1):
                if message.error() is not None:
                    continue
                word, count = decode_word(message.key()), decode_count(message.value())
                self.counted += count - self.latest.get(word, 0)
                self.latest[word] = count
