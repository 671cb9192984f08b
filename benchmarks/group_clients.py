"""Run real consumers for `benchmarks.group_load`: librdkafka's, each polled by its own thread.

Their settings are librdkafka's defaults. What each owns is told by its callbacks, as an application
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
    """Keeps which partitions each consumer owns, and notices when all are owned evenly."""

    def __init__(self, consumers: int, partitions: int) -> None:
        self._lock = threading.Lock()
        self._owned: list[set[int]] = [set() for _ in range(consumers)]
        self._partitions = partitions
        self._complete = threading.Event()
        self._stable_at = 0.0

    def add(self, consumer: int, partitions: Sequence[int]) -> None:
        """Note partitions that were assigned to a consumer."""
        with self._lock:
            self._owned[consumer].update(partitions)
            if self._is_even():
                self._stable_at = time.perf_counter()
                self._complete.set()

    def take(self, consumer: int, partitions: Sequence[int]) -> None:
        """Note partitions that were revoked from a consumer."""
        with self._lock:
            self._owned[consumer].difference_update(partitions)

    def wait_until_stable(self, timeout_s: float) -> float:
        """Wait until all partitions are owned evenly, and return the time since which they are.

        Raises RuntimeError, which says how far they are, after the time-out.
        """
        in_time = self._complete.wait(timeout_s)
        with self._lock:
            if not in_time or not self._is_even():
                raise RuntimeError(f"shares of {[len(each) for each in self._owned]}")
            return self._stable_at

    def _is_even(self) -> bool:
        sizes = [len(each) for each in self._owned]
        together: set[int] = set().union(*self._owned)
        return sum(sizes) == len(together) == self._partitions and max(sizes) - min(sizes) <= 1


def seconds_to_stable(
    servers: str, group: str, topic: str, partitions: int, protocol: str, members: int
) -> float:
    """Subscribe all consumers, and return the seconds until the group is stable."""
    shares = Shares(members, partitions)
    stopping = threading.Event()
    consumers = [_create_consumer(servers, group, protocol) for _ in range(members)]
    for consumer in consumers:
        consumer.list_topics(topic, STABLE_TIMEOUT_S)  # It connects before the clock runs.
    threads = [
        threading.Thread(
            target=_poll_until_stopped, args=(consumer, number, topic, shares, stopping)
        )
        for number, consumer in enumerate(consumers)
    ]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    try:
        return shares.wait_until_stable(STABLE_TIMEOUT_S) - begin
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
        for consumer in consumers:
            consumer.close()


def _create_consumer(servers: str, group: str, protocol: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "group.protocol": protocol,
            "log_level": 3,
        }
    )


def _poll_until_stopped(
    consumer: Consumer, number: int, topic: str, shares: Shares, stopping: threading.Event
) -> None:
    def add_partitions(_: Consumer, partitions: list[TopicPartition]) -> None:
        shares.add(number, [each.partition for each in partitions])

    def take_partitions(_: Consumer, partitions: list[TopicPartition]) -> None:
        shares.take(number, [each.partition for each in partitions])

    consumer.subscribe(
        [topic], on_assign=add_partitions, on_revoke=take_partitions, on_lost=take_partitions
    )
    while not stopping.is_set():
        consumer.poll(POLL_S)
