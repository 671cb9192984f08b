"""Read a topic as it is at this moment: every record up to the ends of its partitions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.processes import HANG_LIMIT_S, wait_until

# `consume` waits that long for so many, at the end of a topic too: each reading takes it at least.
_TAKE_MAX, _TAKE_S = 10_000, 0.02
FETCH_WAIT_MS = 10
"""How long a broker waits at the end of a partition before it answers that there are no records.

Only then is the end known: with Kafka's default each reading takes half a second."""


def records(
    servers: str,
    topic: str,
    partitions: int | Iterable[int],
    *,
    isolation: str = "read_committed",
    timeout_s: float = HANG_LIMIT_S,
    first: Mapping[int, int] | None = None,
) -> Iterator[Any]:
    """Yield the messages of these partitions (a number: of the first so many) in their order.

    `first`: the offsets to begin with, if not the beginnings.

    Raises TimeoutError, with what the client said, if the ends are not reached in time.
    """
    left = set(range(partitions) if isinstance(partitions, int) else partitions)
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{topic}-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "fetch.wait.max.ms": FETCH_WAIT_MS,
            "metadata.recovery.strategy": "none",
        }
    )
    said: set[str] = set()
    deadline = time.monotonic() + timeout_s
    try:
        begin = first or {}
        consumer.assign([TopicPartition(topic, each, begin.get(each, 0)) for each in sorted(left)])
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic}: no end of {left} in {timeout_s:g} s; {said or ''}")
            for message in consumer.consume(_TAKE_MAX, _TAKE_S):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    said.add(str(error))
    finally:
        consumer.close()


def final_records(
    servers: str, topic: str, partitions: int, *, timeout_s: float = HANG_LIMIT_S
) -> Iterator[Any]:
    """Yield the committed messages of a topic that nobody writes to any more, to its very end.

    While a transaction is open a reader of what is committed stops before it, and does not see what
    comes behind; so its end is waited for. Raises TimeoutError.
    """
    wait_until(
        lambda: not open_partitions(servers, topic, partitions),
        timeout_s=timeout_s,
        what=lambda: (
            f"{topic} has an open transaction: {open_partitions(servers, topic, partitions)}"
        ),
    )
    yield from records(servers, topic, partitions, timeout_s=timeout_s)


def open_partitions(servers: str, topic: str, partitions: int) -> list[int]:
    """Return the partitions whose last stable offset is below the high watermark."""
    admin = AdminClient({"bootstrap.servers": servers})

    def ends(isolation: IsolationLevel) -> list[int]:
        asked = {TopicPartition(topic, each): OffsetSpec.latest() for each in range(partitions)}
        found = admin.list_offsets(asked, isolation_level=isolation, request_timeout=30)
        return [found[each].result().offset for each in asked]

    # The stable ones first: what is written in between shows as open, and is looked at again.
    stable = ends(IsolationLevel.READ_COMMITTED)
    both = zip(stable, ends(IsolationLevel.READ_UNCOMMITTED), strict=True)
    return [number for number, (end, high_watermark) in enumerate(both) if end < high_watermark]


class Reader:
    """Reads a topic's committed records from its beginning, as it grows."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{topic}-reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "metadata.recovery.strategy": "none",
            }
        )
        self._consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])

    def take(self, timeout_s: float = 0.02) -> list[Any]:
        """Return what has come since. Raises AssertionError where the client reports an error."""
        messages = self._consumer.consume(_TAKE_MAX, timeout_s)
        for message in messages:
            assert message.error() is None, message.error()
        return list(messages)

    def close(self) -> None:
        self._consumer.close()
