"""Load an application at a steady rate, and watch when results of each partition are committed."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple, Self

from confluent_kafka import Producer

from benchmarks.rebalance_worker import COUNT_BYTES
from tests.reading import Reader

_TURN_S = 0.02


class Arrival(NamedTuple):
    """Tells when a result was read by a reader of committed records, and who had made it."""

    at_s: float
    owner: str


class SteadyLoad:
    """Writes records of all partitions at a steady rate, from a thread of its own."""

    def __init__(
        self, servers: str, topic: str, *, partitions: int, keys: int, records_per_s: int
    ) -> None:
        self.sent: dict[bytes, int] = defaultdict(int)
        """The number of records written with each key."""
        self._topic, self._partitions, self._keys = topic, partitions, keys
        self._interval_s = partitions / records_per_s
        # Without idempotence a request that times out on a busy machine is written twice.
        settings = {"linger.ms": 2, "enable.idempotence": True}
        self._producer = Producer({"bootstrap.servers": servers, **settings})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write_until_stopped, name="load")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_writing()

    def stop_writing(self) -> None:
        """Stop, and wait until all is written."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._producer.flush(60):
            raise RuntimeError("the load was not written in 60 s")

    def _write_until_stopped(self) -> None:
        """Write one record of each partition at each interval, whatever was late before."""
        next_at_s, turn = time.monotonic(), 0
        while not self._stop.is_set():
            for partition in range(self._partitions):
                key = key_of(partition, turn % self._keys)
                self._producer.produce(self._topic, b"", key, partition)
                self.sent[key] += 1
            self._producer.poll(0)
            turn += 1
            next_at_s += self._interval_s
            self._stop.wait(max(next_at_s - time.monotonic(), 0))


class ResultWatch:
    """Reads committed results from a thread of its own, and checks that each key counts up by one.

    So a result that is lost, doubled or out of order is noticed at once.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.counts: dict[bytes, int] = defaultdict(int)
        self.violations: list[str] = []
        self._arrivals: list[list[Arrival]] = [[] for _ in range(partitions)]
        self._reader = Reader(servers, topic, partitions)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read_until_stopped, name="watch")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._reader.close()

    def owners(self) -> list[str]:
        """Return for each partition who has made its last result; empty if there is none."""
        return [arrivals[-1].owner if arrivals else "" for arrivals in self._arrivals]

    def owners_since(self, partition: int, since_s: float) -> set[str]:
        """Return who has made results of a partition since a monotonic time, and the last before.

        So there are several if the partition has changed its owner since.
        """
        arrivals = self._arrivals[partition]
        before = [each.owner for each in arrivals if each.at_s < since_s]
        return {*before[-1:], *(each.owner for each in arrivals if each.at_s >= since_s)}

    def seconds_since_result(self) -> float:
        """Return for how long the quietest partition has had no result."""
        now_s = time.monotonic()
        return max(now_s - arrivals[-1].at_s if arrivals else now_s for arrivals in self._arrivals)

    def find_longest_pause(
        self, partition: int, since_s: float, until_s: float, *, is_begun_within: bool = False
    ) -> float:
        """Return the longest time in s between two results that ends since `since_s`.

        With `is_begun_within` it has begun since then too.
        """
        times = [each.at_s for each in self._arrivals[partition]]
        gaps = [
            later - earlier
            for earlier, later in pairwise(times)
            if since_s < (earlier if is_begun_within else later) and earlier < until_s
        ]
        return max(gaps, default=until_s - since_s)

    def _read_until_stopped(self) -> None:
        while not self._stop.is_set():
            messages = self._reader.take(_TURN_S)
            now_s = time.monotonic()
            for message in messages:
                key, value = message.key(), message.value()
                count = int.from_bytes(value[:COUNT_BYTES], "big")
                if count != self.counts[key] + 1:
                    self.violations.append(f"{key!r}: {count} after {self.counts[key]}")
                self.counts[key] = count
                arrival = Arrival(now_s, value[COUNT_BYTES:].decode())
                self._arrivals[int(key.partition(b":")[0])].append(arrival)


def key_of(partition: int, number: int) -> bytes:
    """Return a key of a partition, whose number it begins with."""
    return b"%d:%d" % (partition, number)
