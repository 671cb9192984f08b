"""Write to an application all the time, and note when what it makes of that is committed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import count, pairwise

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.integration.cluster import PARTITIONS, Topics
from tests.processes import HANG_LIMIT_S, wait_until

ENOUGH = 20
"""The number of committed records that show a partition to be committed on."""


class Flow:
    """Writes to each input partition all the time, and notes when what it wrote is committed."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._stop = threading.Event()
        self._has_failed = False
        self._error: Exception | None = None
        self._threads = [
            threading.Thread(target=self._note_error, args=(each,))
            for each in (self._write, self._read)
        ]
        self.written: Counter[int] = Counter()
        self.committed: dict[int, list[tuple[float, int]]] = {n: [] for n in range(PARTITIONS)}
        """For each input partition: when a number was seen, and the number."""

    def __enter__(self) -> Flow:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._has_failed = error is not None  # what is missing may never come then
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if error is None and self._error is not None:
            raise self._error

    def _note_error(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:
            self._error = error

    def _write(self) -> None:
        # Otherwise what is sent again on a topic that has no leader yet would come out of order.
        order = {"enable.idempotence": True}
        producer = Producer({"bootstrap.servers": self._topics.servers, "linger.ms": 1, **order})
        for number in count():
            for partition in range(PARTITIONS):
                value, key = (
                    f"{partition} {number}",
                    str(partition),
                )  # with a key it keeps its order
                producer.produce(self._topics.source, value, key, partition)
                self.written[partition] += 1
            producer.poll(0)
            if self._stop.wait(0.01):
                break
        assert producer.flush(HANG_LIMIT_S) == 0

    def _read(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._topics.servers,
                "group.id": f"{self._topics.target}-flow",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 10,
            }
        )
        consumer.assign([TopicPartition(self._topics.target, n, 0) for n in range(PARTITIONS)])
        while not self._stop.is_set() or self._is_waiting():
            for message in consumer.consume(1_000, 0.02):
                if message.error() is None:
                    partition, number = map(int, (message.value() or b"").split())
                    self.committed[partition].append((time.monotonic(), number))
        consumer.close()

    def _is_waiting(self) -> bool:
        return not self._has_failed and any(self.find_missing().values())

    def find_missing(self) -> dict[int, int]:
        """Return how many written records of each partition were not seen yet."""
        return {n: self.written[n] - len(seen) for n, seen in self.committed.items()}

    def wait_for_more(self, partitions: set[int]) -> None:
        """Wait until more of what is written from now on has been committed, of each partition."""
        wanted = {n: self.written[n] + ENOUGH for n in partitions}
        wait_until(
            lambda: (
                self._error is not None
                or all(len(self.committed[n]) >= wanted[n] for n in partitions)
            ),
            what=lambda: f"{ {n: len(seen) for n, seen in self.committed.items()} } of {wanted}",
        )
        if self._error is not None:
            raise self._error

    def longest_pause_ms(self, partition: int, began_s: float) -> float:
        """Return the longest time between two commits of a partition since a monotonic time."""
        times = [began_s, *(at for at, _ in self.committed[partition] if at > began_s)]
        return 1_000 * max(after - before for before, after in pairwise(times))

    def check(self) -> None:
        """Check that each record has come out once, in its order."""
        for partition, seen in self.committed.items():
            numbers = [number for _, number in seen]
            wrong = [(at, number) for at, number in enumerate(numbers) if number != at]
            assert not wrong, f"partition {partition} from {wrong[0]} on: {wrong[:30]}"
            assert len(numbers) == self.written[partition]
