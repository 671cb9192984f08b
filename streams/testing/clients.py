"""The clients of `streams.runtime.interfaces` on a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from streams.errors import TaskMigrated
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
        self._unread: set[Partition] = set()
        """Nothing was taken of these, not even a marker: librdkafka tells no position of them."""
        self._strayed: dict[Partition, int] = {}
        self.paused: set[Partition] = set()

    def add(self, positions: Mapping[Partition, int]) -> None:
        assert not self._at.keys() & positions.keys(), "assigned twice"
        self._at |= positions
        self._unread |= positions.keys()

    def remove(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            del self._at[partition]
            self._unread.discard(partition)
            self.paused.discard(partition)

    def pause(self, partition: Partition) -> None:
        self.paused.add(partition)

    def resume(self, partition: Partition) -> None:
        self.paused.discard(partition)

    def take(self, records_max: int, timeout_s: float) -> list[Any]:
        taken: list[Message] = []
        for partition, position in self._at.items():
            log = self._cluster.logs[partition]
            if partition in self.paused:
                continue
            if not log.start <= position <= log.end:
                self._strayed[partition] = position
                continue
            reached = position
            for message in log.read(position):
                if len(taken) == records_max:
                    break
                taken.append(message)
                reached = message.offset() + 1
            else:  # past markers, and what was aborted
                reached = log.last_stable
            if reached > position:
                self._at[partition] = reached
                self._unread.discard(partition)
        return taken

    def lag(self, partition: Partition) -> int | None:
        return self._cluster.logs[partition].last_stable - self._at[partition]

    def strayed(self) -> dict[Partition, int]:
        strayed, self._strayed = self._strayed, {}
        return strayed

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {p: self._at[p] for p in partitions if p in self._at and p not in self._unread}

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
            if partition not in self.paused:
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

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Past markers, and what was aborted."""
        logs = self._cluster.logs
        return {p: logs[p].seek(self._at[p])[1] for p in partitions if p in self._at}


class MemoryProducer:
    """Holds records back until `flush`, as lingering does. A new one fences the one before it.

    `now_ms` is for records without a timestamp; `random` finds partitions for those without a key.
    """

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
            self._epoch = cluster.init_producer(name)
            self.identity = Identity(sorted(cluster.epochs).index(name), self._epoch)

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
        self._require(topic)
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
        self._require(topic)
        return self._cluster.partition_counts[topic]

    def _require(self, topic: str) -> None:
        """Create a topic of a name that a record gave: as if it had been there."""
        self._cluster.create(topic, 1)

    def _partition(self, topic: str, key: bytes | None) -> int:
        count = self._cluster.partition_counts[topic]
        return self._random.randrange(count) if key is None else partition_of(key, count)

    def begin(self) -> None:
        if self.transactional and self._transaction is None:
            self._transaction = Transaction()

    def make_room(self) -> None:
        self._deliver()

    def poll(self) -> None:
        """Nothing is delivered before it is flushed."""

    def flush(self) -> None:
        self._deliver()

    def _deliver(self) -> None:
        queue, self._queue = self._queue, []
        transaction = self._enlist() if queue and self.transactional else None
        account = None if self.written is None else self.written.report
        for partition, key, value, time_ms, headers, report in queue:
            message = self._cluster.append(partition, key, value, time_ms, headers, transaction)
            told = report or account
            # Without transactions only failures are reported (delivery.report.only.error).
            if self.transactional and told is not None:
                told(None, message)

    def commit(self, offsets: Iterable[tuple[Partition, Committed]], group: bytes) -> None:
        self._enlist().offsets |= dict(offsets)

    def end(self) -> None:
        self._deliver()
        self._cluster.end(self._enlist(), committed=True)
        self._transaction = None

    def _enlist(self) -> Transaction:
        """Tell the cluster of the transaction, which it knows from its first records or offsets on.
        Raises TaskMigrated where a newer producer has the transactional id."""
        if self._epoch != self._cluster.epochs[self.name]:
            raise TaskMigrated("a newer producer has this id")
        assert self._transaction is not None, "no transaction was begun"
        self._cluster.open[self.name] = self._transaction
        return self._transaction

    def discard(self) -> None:
        self._queue = []

    def close(self) -> bool:
        self._queue = []
        transaction, self._transaction = self._transaction, None
        if transaction is not None and self._cluster.open.get(self.name) is transaction:
            self._cluster.end(transaction, committed=False)
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
        return {topic: self._cluster.topic_ids[topic] for topic in topics}

    def topic_settings(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        return {topic: dict(self._cluster.settings[topic]) for topic in topics}

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
        late = (m.offset() for m in log.entries[log.start :] if m.timestamp()[1] >= timestamp_ms)
        return next(late, log.end)
