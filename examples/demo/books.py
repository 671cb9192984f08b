"""The demo's own Kafka client: it loads the lines, follows the counts, and checks the books."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from examples.demo.corpus import Line
from streams import serdes

PARTITIONS = 4
_WAIT_S = 30


class Verdict(NamedTuple):
    """How the result differs from the truth, in words."""

    missing: int
    twice: int
    example: str


class Books:
    """Topics of one run on one broker."""

    def __init__(self, address: str, suffix: str) -> None:
        self._settings = {"bootstrap.servers": address}
        self._admin = AdminClient(self._settings)
        self._group = f"word-count{suffix}"
        self._lines = f"lines{suffix}"
        self._counts = f"counts-by-word{suffix}"
        self._repartition = f"{self._group}-counts-repartition"
        self._changelog = f"{self._group}-counts-changelog"

    def create_topics(self) -> None:
        topics = [NewTopic(name, PARTITIONS) for name in (self._lines, self._counts)]
        for answer in self._admin.create_topics(topics).values():
            answer.result(_WAIT_S)

    def delete_topics(self) -> None:
        """Leave somebody else's broker as it was."""
        topics = [self._lines, self._counts, self._repartition, self._changelog]
        for answer in self._admin.delete_topics(topics).values():
            answer.exception(_WAIT_S)

    def load(self, lines: list[Line], advanced: Callable[[int], None]) -> None:
        """Write all lines, keyed by file. Raises RuntimeError if one is not delivered."""
        failed: list[str] = []

        def report(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failed.append(error.str())

        producer = Producer(
            {
                **self._settings,
                "enable.idempotence": True,
                "linger.ms": 50,
                "queue.buffering.max.messages": 1_000_000,
                "delivery.report.only.error": True,
                "on_delivery": report,
            }
        )
        for number, (file, text) in enumerate(lines):
            producer.produce(self._lines, text, file)
            if number % 10_000 == 0:
                producer.poll(0)
                advanced(number)
        if producer.flush(60) or failed:
            raise RuntimeError(f"lines were not delivered: {sorted(set(failed))}")
        advanced(len(lines))

    def drained(self) -> bool:
        """Whether no committed record is left to process, on any topic that is read."""
        partitions = [
            TopicPartition(topic, number)
            for topic in (self._lines, self._repartition)
            for number in range(PARTITIONS)
        ]
        request = [ConsumerGroupTopicPartitions(self._group, partitions)]
        answer = self._admin.list_consumer_group_offsets(request)[self._group].result(_WAIT_S)
        committed = [
            TopicPartition(p.topic, p.partition, max(p.offset, 0)) for p in answer.topic_partitions
        ]
        reader = Consumer(
            {
                **self._settings,
                "group.id": f"{self._group}-reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            reader.assign(committed)
            at_end: set[tuple[str, int]] = set()
            while len(at_end) < len(committed):
                message = reader.poll(_WAIT_S)
                error = None if message is None else message.error()
                if error is None or error.code() != KafkaError._PARTITION_EOF:
                    return False
                at_end.add((message.topic(), message.partition()))
        finally:
            reader.close()
        return True


class Follower:
    """Follows the output topic, committed records only: the latest count of each word."""

    def __init__(self, address: str, suffix: str) -> None:
        self.latest: dict[str, int] = {}
        self.counted = 0
        self._stop = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": f"word-count{suffix}-follower",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        topic = f"counts-by-word{suffix}"
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def verdict(self, truth: Counter[str]) -> Verdict:
        """Compare word for word."""
        off = {
            word: self.latest.get(word, 0) - truth[word]
            for word in truth.keys() | self.latest.keys()
            if self.latest.get(word, 0) != truth[word]
        }
        worst = max(off, key=lambda word: abs(off[word]), default=None)
        return Verdict(
            missing=-sum(difference for difference in off.values() if difference < 0),
            twice=sum(difference for difference in off.values() if difference > 0),
            example=""
            if worst is None
            else f"{worst!r}: {self.latest.get(worst, 0)} counted, {truth[worst]} in the files",
        )

    def _follow(self) -> None:
        decode_word, decode_count = serdes.string.deserialize, serdes.int64.deserialize
        while not self._stop.is_set():
            for message in self._consumer.consume(10_000, 0.1):
                if message.error() is not None:
                    continue
                word, count = decode_word(message.key()), decode_count(message.value())
                self.counted += count - self.latest.get(word, 0)
                self.latest[word] = count
