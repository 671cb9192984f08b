"""Real consumers for `benchmarks.group_load`: librdkafka's, each with a thread that polls it.

Their settings are librdkafka's defaults. What each has is told by its callbacks, as an application
would learn it; stable is what `benchmarks.group_members` says, without the generation: once every
member has its even share, nothing is left to be moved.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, TopicPartition

STABLE_TIMEOUT_S = 240.0
POLL_S = 0.05


class Shares:
    """What the consumers have; `stable_at` is set when that is everything, evenly."""

    def __init__(self, consumers: int, partitions: int) -> None:
        self._lock = threading.Lock()
        self._owned: list[set[int]] = [set() for _ in range(consumers)]
        self._partitions = partitions
        self._complete = threading.Event()
        self._stable_at = 0.0

    def add(self, consumer: int, partitions: Sequence[int]) -> None:
        with self._lock:
            self._owned[consumer].update(partitions)
            if self._is_complete():
                self._stable_at = time.perf_counter()
                self._complete.set()

    def take(self, consumer: int, partitions: Sequence[int]) -> None:
        with self._lock:
            self._owned[consumer].difference_update(partitions)

    def stable_at(self, timeout_s: float) -> float:
        """When it became so. RuntimeError says how far it has come."""
        in_time = self._complete.wait(timeout_s)
        with self._lock:
            if not in_time or not self._is_complete():
                raise RuntimeError(f"shares of {[len(each) for each in self._owned]}")
            return self._stable_at

    def _is_complete(self) -> bool:
        sizes = [len(each) for each in self._owned]
        together: set[int] = set().union(*self._owned)
        return sum(sizes) == len(together) == self._partitions and max(sizes) - min(sizes) <= 1


def seconds_to_stable(
    servers: str, group: str, topic: str, partitions: int, protocol: str, members: int
) -> float:
    """From the first subscription, all at once, until the group is stable."""
    shares = Shares(members, partitions)
    stopping = threading.Event()
    consumers = [_consumer(servers, group, protocol) for _ in range(members)]
    for consumer in consumers:
        consumer.list_topics(topic, STABLE_TIMEOUT_S)  # connected before the clock runs
    threads = [
        threading.Thread(target=_poll, args=(consumer, number, topic, shares, stopping))
        for number, consumer in enumerate(consumers)
    ]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    try:
        return shares.stable_at(STABLE_TIMEOUT_S) - begin
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
        for consumer in consumers:
            consumer.close()


def _consumer(servers: str, group: str, protocol: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "group.protocol": protocol,
            "log_level": 3,
        }
    )


def _poll(
    consumer: Consumer, number: int, topic: str, shares: Shares, stopping: threading.Event
) -> None:
    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        shares.add(number, [each.partition for each in partitions])

    def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
        shares.take(number, [each.partition for each in partitions])

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    while not stopping.is_set():
        consumer.poll(POLL_S)
