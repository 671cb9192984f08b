"""Test that librdkafka's consumers change protocols one by one while records flow."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from tests.brokers import Broker
from tests.conformance import configs
from tests.conformance.calls import eventually
from tests.conformance.migrants import kind
from tests.conformance.wire import Client
from tests.processes import HANG_LIMIT_S

PARTITIONS = 6


class Reader(threading.Thread):
    """Runs one consumer that reads, keeps what it has read, and commits.

    `owned`: its partitions.
    """

    def __init__(self, settings: dict[str, object], topic: str, read: set[bytes]) -> None:
        super().__init__(daemon=True)
        self.owned: list[int] = []
        self.failures: list[str] = []
        self._read = read
        self._stopped = threading.Event()
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])
        self.start()

    def run(self) -> None:
        while not self._stopped.is_set():
            message = self._consumer.poll(0.02)
            # Called in this thread only: another one may wait for the poll for ever.
            self.owned = [each.partition for each in self._consumer.assignment()]
            if message is None:
                continue
            error = message.error()
            if error:
                # Of a round of the classic group that its conversion ends: every JoinGroup that
                # waits gets REBALANCE_IN_PROGRESS, which librdkafka reports before it rejoins.
                # Source: convertToConsumerGroup of GroupMetadataManager.
                if error.code() != KafkaError.REBALANCE_IN_PROGRESS:
                    self.failures.append(str(error))
                continue
            value = message.value()
            assert value is not None
            self._read.add(value)
            with contextlib.suppress(KafkaException):  # in a rebalance: it is read once more
                self._consumer.commit(message, asynchronous=False)
        self._consumer.close()

    def stop(self) -> None:
        self._stopped.set()
        self.join()


@pytest.fixture
def writer(broker: Broker, six: tuple[str, UUID]) -> Iterator[Callable[[], int]]:
    """Write a record every few milliseconds until the returned function is called for the count."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    stopped, written = threading.Event(), [0]

    def write() -> None:
        while not stopped.is_set():
            producer.produce(six[0], b"%d" % written[0], partition=written[0] % PARTITIONS)
            producer.poll(0)
            written[0] += 1
            stopped.wait(0.003)
        producer.flush()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()

    def stop() -> int:
        stopped.set()
        thread.join()
        return written[0]

    yield stop
    stop()


def test_three_consumers_go_over_and_back_and_nothing_is_lost(
    broker: Broker,
    client: Client,
    group: str,
    six: tuple[str, UUID],
    writer: Callable[[], int],
    request: pytest.FixtureRequest,
) -> None:
    soon = ("consumer.heartbeat.interval.ms", configs.SET, "100")
    assert configs.alter(client, configs.GROUP, group, soon) == configs.DONE
    read: set[bytes] = set()
    common = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    protocols: dict[str, dict[str, object]] = {
        "classic": {"group.protocol": "classic", "heartbeat.interval.ms": 100},
        "consumer": {"group.protocol": "consumer"},
    }

    seen: list[Reader] = []

    def start(protocol: str) -> Reader:
        seen.append(Reader({**common, **protocols[protocol]}, six[0], read))
        request.addfinalizer(seen[-1].stop)
        return seen[-1]

    def await_owned(readers: list[Reader]) -> None:
        deadline = time.monotonic() + HANG_LIMIT_S
        while True:
            owned = [list(reader.owned) for reader in readers]
            together = sorted(each for part in owned for each in part)
            if all(owned) and together == list(range(PARTITIONS)):
                return
            assert time.monotonic() < deadline, (owned, kind(client, group))
            time.sleep(0.02)

    readers = [start("classic") for _ in range(3)]
    await_owned(readers)
    for protocol in ("consumer", "classic"):
        for _ in range(3):
            readers.pop(0).stop()
            readers.append(start(protocol))
            await_owned(readers)
        expected = f"{protocol} Stable"
        assert eventually(lambda: kind(client, group), expected) == expected
    count = writer()
    assert eventually(lambda: len(read), count) == count
    for reader in readers:
        reader.stop()
    assert [reader.failures for reader in seen] == [[]] * len(seen)
