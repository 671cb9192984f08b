"""Test that joins of streams of Kafka Streams go on in Millrace.

Orders and payments that wait for each other when Kafka Streams is stopped are joined by Millrace,
once; those that stay without a match are written once by an outer join, whichever of the two writes
them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from streams.common.partitioning import partition_for_key
from tests.brokers import Broker
from tests.clients.programs import Program
from tests.porting.takeover.offers import app
from tests.porting.takeover.steps import PARTITIONS, OffsetImport, compile_java, create_topics
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records
from tests.sampling import draw_seed

ORDERS, PAYMENTS = "orders-in", "payments-in"
OUTPUTS = ("paid-out", "either-out")
HOUR_MS = 3_600_000
WINDOW_MS, GRACE_MS = 600_000, 2 * HOUR_MS
PHASE_MS = 540_000
"""For how long a phase of orders lasts: no record is older than the window when it comes."""
KEYS = [f"item{number}" for number in range(60)]

pytestmark = pytest.mark.sampled(1, by="broker")


class Sent(NamedTuple):
    """Represents a record of an input."""

    topic: str
    key: str
    value: str
    time_ms: int


class Offers:
    """Draws the records, writes them, and knows what has to come of them."""

    def __init__(self, servers: str, random: Random) -> None:
        self.sent: list[Sent] = []
        self._servers = servers
        self._random = random
        self._producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})

    def send(self, drawn: list[Sent]) -> None:
        for topic, key, value, time_ms in drawn:
            self._producer.produce(topic, value, key, timestamp=time_ms)
        assert self._producer.flush(HANG_LIMIT_S) == 0
        self.sent += drawn

    def draw_trade(self, since_ms: int, count: int) -> list[Sent]:
        """Draw orders and payments of a phase, in the order of their times."""
        times = sorted(self._random.sample(range(since_ms + 1, since_ms + PHASE_MS), count))
        drawn = []
        for time_ms in times:
            topic = self._random.choice((ORDERS, PAYMENTS))
            key = self._random.choice(KEYS)
            drawn.append(Sent(topic, key, f"{topic[0]}{time_ms}", time_ms))
        return drawn

    def draw_end(self, time_ms: int) -> list[Sent]:
        """Return an order for each partition that closes the windows of all before."""
        keys: dict[int, str] = {}
        number = 0
        while len(keys) < PARTITIONS:
            key = f"end{number}"
            keys.setdefault(partition_for_key(key.encode(), PARTITIONS), key)
            number += 1
        return [Sent(ORDERS, key, f"o{time_ms}", time_ms) for key in keys.values()]

    def expect(self) -> dict[str, Counter[str]]:
        """Return how often each output has each value, by what was sent so far."""
        orders = [each for each in self.sent if each.topic == ORDERS]
        payments = [each for each in self.sent if each.topic == PAYMENTS]
        pairs = [
            (order, payment)
            for order in orders
            for payment in payments
            if order.key == payment.key and abs(order.time_ms - payment.time_ms) <= WINDOW_MS
        ]
        paid = Counter(f"{order.value}+{payment.value}" for order, payment in pairs)
        matched = {each for pair in pairs for each in pair}
        now_ms: Counter[int] = Counter()
        for each in self.sent:
            partition = partition_for_key(each.key.encode(), PARTITIONS)
            now_ms[partition] = max(now_ms[partition], each.time_ms)
        alone = Counter(
            f"{each.value}+null" if each.topic == ORDERS else f"null+{each.value}"
            for each in self.sent
            if each not in matched
            and each.time_ms + WINDOW_MS + GRACE_MS
            < now_ms[partition_for_key(each.key.encode(), PARTITIONS)]
        )
        return dict(zip(OUTPUTS, (paid, paid + alone), strict=True))

    def read(self) -> dict[str, Counter[str]]:
        return {
            topic: Counter(m.value().decode() for m in records(self._servers, topic, PARTITIONS))
            for topic in OUTPUTS
        }

    def wait_for_results(self) -> None:
        """Wait until all has come that is to come, and nothing more than that."""
        wanted = self.expect()
        found = [self.read()]

        def is_there() -> bool:
            found[0] = self.read()
            return all(found[0][topic] >= wanted[topic] for topic in OUTPUTS)

        wait_until(is_there, what=lambda: str({t: wanted[t] - found[0][t] for t in OUTPUTS}))
        assert found[0] == wanted


@pytest.fixture
def topics(broker: Broker) -> Iterator[None]:
    with create_topics(broker, "offers", (ORDERS, PAYMENTS, *OUTPUTS)):
        yield


@pytest.mark.usefixtures("topics")
def test_joins_go_on_where_kafka_streams_was_stopped(broker: Broker, tmp_path: Path) -> None:
    seed = draw_seed("takeover of joins")
    print(f"{seed=}")
    servers = broker.bootstrap_servers
    offers = Offers(servers, Random(seed))
    begin_ms = int(time.time()) * 1_000 - 20 * HOUR_MS
    command = compile_java("Offers", tmp_path)
    java = Program("offers", [*command, servers, str(tmp_path / "java"), "exactly_once_v2"])
    try:
        java.wait_for("RUNNING")
        offers.send(offers.draw_trade(begin_ms + HOUR_MS, 150))
        offers.wait_for_results()
        offers.send(offers.draw_end(begin_ms + 6 * HOUR_MS))  # Java writes what had no match
        offers.wait_for_results()
        offers.send(offers.draw_trade(begin_ms + 10 * HOUR_MS, 150))
        offers.wait_for_results()
    finally:
        java.close()  # by SIGTERM: it commits and leaves
    # The first of these pair with what waits in Java's stores.
    offers.send(offers.draw_trade(begin_ms + 10 * HOUR_MS + PHASE_MS, 100))
    offset_import = OffsetImport("offers", broker, tmp_path / "state")
    assert "its workers may start" in offset_import.take_offsets_over()
    app.configure(None, bootstrap_servers=servers, state_dir=tmp_path / "state")
    with app.start(handle_signals=False) as millrace:
        millrace.wait_for("RUNNING", timeout=HANG_LIMIT_S)
        offers.wait_for_results()
        offers.send(offers.draw_end(begin_ms + 15 * HOUR_MS))
        offers.wait_for_results()
