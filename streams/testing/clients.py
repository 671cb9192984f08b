"""The clients of `streams.runtime.interfaces` on a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from streams.membership.transactions import Identity
from streams.positions import Committed, Partition
from streams.runtime.clients.partitioning import partition_of
from streams.runtime.clients.written import Written
from streams.testing.cluster import Cluster, Message, Transaction
from streams.testing.order import Order


class MemoryConsumer:
    """Reads in bulk, partition after partition: for restores, and for global tables."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._at: dict[Partition, int] = {}
        self._paused: set[Partition] = set()

    def add(self, positions: Mapping[Partition, int]) -> None:
        self._at |= positions

    def remove(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            del self._at[partition]
            self._paused.discard(partition)

    def pause(self, partition: Partition) -> None:
        self._paused.add(partition)

    def resume(self, partition: Partition) -> None:
        self._paused.discard(partition)

    def take(self, records_max: int, timeout_s: float) -> list[Any]:
        taken: list[Message] = []
        for partition, position in self._at.items():
            for message in self._cluster.logs[partition].read(position):
                if len(taken) == records_max:
                    return taken
                taken.append(message)
                self._at[partition] = message.offset() + 1
        return taken

    def lag(self, partition: Partition) -> int | None:
        log = self._cluster.logs[partition]
        message, position = log.seek(self._at[partition])
        return 0 if message is None else log.last_stable - position

    def strayed(self) -> dict[Partition, int]:
        return {}

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Past markers, and what was aborted."""
        logs = self._cluster.logs
        return {p: logs[p].seek(self._at[p])[1] for p in partitions if p in self._at}

    def close(self) -> None:
        self._at.clear()


class OrderedConsumer(MemoryConsumer):
    """Hands out one record at a time: whichever is next."""

    def __init__(self, cluster: Cluster, order: Order) -> None:
        super().__init__(cluster)
        self._order = order

    def heads(self) -> dict[Partition, Message]:
        """The next record of each partition that has one."""
        heads: dict[Partition, Message] = {}
        for partition, position in self._at.items():
            if partition not in self._paused:
                message, self._at[partition] = self._cluster.logs[partition].seek(position)
                if message is not None:
                    heads[partition] = message
        return heads

    def lag(self, partition: Partition) -> int | None:
        """Nothing that comes earlier than what a task has is kept back from it."""
        return 0

    def take(self, records_max: int, timeout_s: float) -> list[Any]:
        heads = self.heads()
        if not heads:
            return []
        partition = self._order.next(heads)
        self._at[partition] += 1
        return [heads[partition]]


class MemoryProducer:
    """Holds records back until `flush`, as lingering does. `now_ms` is for records without a
    timestamp; `random` finds partitions for those without a key."""

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        *,
        transactional: bool,
        accounts: bool,
        now_ms: Callable[[], int],
        random: Random,
    ) -> None:
        self.name = name
        self.transactional = transactional
        self.written = Written() if accounts else None
        self.identity: Identity | None = None
        self._cluster = cluster
        self._now_ms = now_ms
        self._random = random
        self._queue: list[tuple[Partition, Any, Any, int, Any, Any]] = []
        self._transaction: Transaction | None = None
        if transactional:
            self.identity = Identity(
                sorted({*cluster.epochs, name}).index(name), cluster.init_producer(name)
            )

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: Callable[[Any, Any], None] | None = None,
        on_delivery: Callable[[Any, Any], None] | None = None,
        timestamp_ms: int = 0,
        headers: Any = None,
    ) -> None:
        self._cluster.create(topic, 1)  # of a name that a record gave: as if it had been there
        value, key = _bytes("value", value), _bytes("key", key)
        at = Partition(topic, self._partition(topic, key) if partition < 0 else partition)
        if at not in self._cluster.logs:
            raise ValueError(
                f"topic {topic!r} has {self._cluster.partition_counts[topic]} partitions, and a "
                f"record is to go to partition {partition}"
            )
        # librdkafka takes 0 for no timestamp, and writes the time that it is.
        time_ms = timestamp_ms or self._now_ms()
        if not isinstance(headers, list | dict | None):
            raise TypeError("expected headers to be dict or list of (key, value) tuples")
        pairs = tuple(headers.items() if isinstance(headers, dict) else headers or ())
        self._queue.append((at, key, value, time_ms, pairs, callback or on_delivery))

    def partition_count(self, topic: str) -> int:
        self._cluster.create(topic, 1)
        return self._cluster.partition_counts[topic]

    def _partition(self, topic: str, key: bytes | None) -> int:
        count = self._cluster.partition_counts[topic]
        return self._random.randrange(count) if key is None else partition_of(key, count)

    def begin(self) -> None:
        if self.transactional and self._transaction is None:
            self._transaction = self._cluster.begin(self.name)

    def make_room(self) -> None:
        """The queue is never full."""

    def poll(self) -> None:
        """Nothing is delivered before it is flushed."""

    def flush(self) -> None:
        queue, self._queue = self._queue, []
        account = None if self.written is None else self.written.report
        for partition, key, value, time_ms, headers, report in queue:
            message = self._cluster.append(
                partition, key, value, time_ms, headers, self._transaction
            )
            told = report or account
            # Without transactions only failures are reported (delivery.report.only.error).
            if self.transactional and told is not None:
                told(None, message)

    def commit(self, offsets: Iterable[tuple[Partition, Committed]], group: bytes) -> None:
        assert self._transaction is not None, "offsets outside a transaction"
        self._transaction.offsets |= dict(offsets)

    def end(self) -> None:
        self.flush()
        self._cluster.end(self.name, committed=True)
        self._transaction = None

    def discard(self) -> None:
        self._queue = []

    def close(self) -> bool:
        self._queue = []
        if self._transaction is not None:
            self._cluster.end(self.name, committed=False)
            self._transaction = None
        return True


def _bytes(what: str, given: Any) -> bytes | None:
    """As confluent-kafka takes it."""
    if given is None or isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return given.encode()
    raise TypeError(f"{what} is to be bytes, and is {type(given).__name__}")


class MemoryAdmin:
    """Answers from the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def partition_counts(self) -> dict[str, int]:
        return dict(self._cluster.partition_counts)

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        return {topic: self._cluster.topic_id(topic) for topic in topics}

    def topic_settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        return {topic: dict(self._cluster.settings(topic)) for topic in topics}

    def create_topics(
        self, partitions: Mapping[str, int], settings: Mapping[str, dict[str, str]], factor: int
    ) -> None:
        for topic, number in partitions.items():
            self._cluster.create(topic, number, settings.get(topic))

    def groups(self) -> list[str]:
        return []

    def delete_before(self, offsets: Mapping[Partition, int]) -> None:
        for partition, offset in offsets.items():
            self._cluster.logs[partition].start = offset

    def earliest(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {p: self._cluster.logs[p].start for p in partitions}

    def latest(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {p: self._cluster.logs[p].end for p in partitions}

    def since(self, partitions: Sequence[Partition], timestamp_ms: int) -> dict[Partition, int]:
        return {p: self._since(p, timestamp_ms) for p in partitions}

    def _since(self, partition: Partition, timestamp_ms: int) -> int:
        log = self._cluster.logs[partition]
        late = (m.offset() for m in log.entries if m.timestamp()[1] >= timestamp_ms)
        return next(late, log.end)
