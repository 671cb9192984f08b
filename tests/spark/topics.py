"""Write topics with everything in them that a reader of committed records must step over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S, wait_until


def make_again(servers: str, topic: str, partitions: int = 1) -> None:
    """Delete a topic and create it again at once, as soon as the broker lets."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(HANG_LIMIT_S)

    def is_created() -> bool:
        try:
            admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(HANG_LIMIT_S)
        except KafkaException:  # the deletion goes on
            return False
        return True

    wait_until(is_created, what=f"{topic} can't be created again")
    wait_until(lambda: topic in admin.list_topics(timeout=HANG_LIMIT_S).topics, what=topic)


class Record(NamedTuple):
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Written:
    """Represents a topic that transactions write to, and what of it is committed.

    `configs` are the topic's, `settings` the producer's.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        partitions: int = 1,
        configs: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.servers = servers
        self.topic = topic
        self._settings = dict(settings or {})
        self.committed: list[Record] = []
        with Client(servers) as client:
            create_topic(client, topic, partitions=partitions, configs=dict(configs or {}))
        self._producer: Any = None

    def transaction(
        self,
        records: Iterable[tuple[int, bytes | None, bytes | None]],
        *,
        commit: bool = True,
        end: bool = True,
        **more: Any,
    ) -> None:
        """Write (partition, key, value) of each in one transaction, delivered when this returns."""
        if self._producer is None:
            self._producer = Producer(
                {
                    "bootstrap.servers": self.servers,
                    "transactional.id": f"{self.topic}-writer",
                    "linger.ms": 5,
                    **self._settings,
                }
            )
            self._producer.init_transactions(HANG_LIMIT_S)
        written: list[Record] = []

        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            key, value = message.key(), message.value()
            written.append(Record(message.partition(), message.offset(), key, value))

        self._producer.begin_transaction()
        for partition, key, value in records:
            self._producer.produce(
                self.topic,
                partition=partition,
                key=key,
                value=value,
                on_delivery=delivered,
                **more,
            )
            self._producer.poll(0)
        assert self._producer.flush(HANG_LIMIT_S) == 0
        if end:
            self.end(commit=commit)
        if commit:
            self.committed += written

    def end(self, *, commit: bool) -> None:
        """End the transaction that was left open."""
        if commit:
            self._producer.commit_transaction(HANG_LIMIT_S)
        else:
            self._producer.abort_transaction(HANG_LIMIT_S)

    def rows(self) -> set[Record]:
        return set(self.committed)


def mixed(servers: str, topic: str, partitions: int, records: int) -> Written:
    """Write `records` committed ones in each partition.

    Aborted transactions and markers are all between them, at the beginning and at the end.
    """
    written = Written(servers, topic, partitions)
    numbers = range(partitions)
    written.transaction([(p, b"aborted", b"first") for p in numbers], commit=False)
    size, number = 1, 0
    while number < records:
        upto = min(number + size, records)
        written.transaction(
            [
                (p, None if n % 7 == 0 else b"%d" % n, None if n % 11 == 0 else b"value %d" % n)
                for n in range(number, upto)
                for p in numbers
            ]
        )
        written.transaction(
            [(p, b"aborted", b"%d" % n) for p in numbers for n in range(size)], commit=False
        )
        number, size = upto, size * 2
    return written
