"""Write keyed and numbered records while members come and go, and remember where each landed."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, Message, Producer

from tests.processes import HANG_LIMIT_S

KEYS = 100
RECORDS_A_SPELL = 10
SPELL_S = 0.05


class Flow:
    """Represents an idempotent producer on a thread of its own that runs until it is stopped."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.records: dict[tuple[int, int], int] = {}
        self.errors: list[str] = []
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._ended = threading.Event()

    @contextmanager
    def flowing(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, name="flow")
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 500,
                "log_level": 2,  # a connection that is refused is no news: the broker is killed
            }
        )
        numbers = itertools.count()
        while not self._ended.wait(SPELL_S):
            for number in itertools.islice(numbers, RECORDS_A_SPELL):
                self._send(producer, number)
            producer.poll(0)
        if left := producer.flush(HANG_LIMIT_S):
            self.errors.append(f"{left} records were never acknowledged")

    def _send(self, producer: Producer, number: int) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            partition, offset = message.partition(), message.offset()
            if error is not None or partition is None or offset is None:
                self.errors.append(f"{number}: {error}")
            else:
                self.records[partition, offset] = number

        key, value = f"key {number % KEYS}", str(number)
        producer.produce(self._topic, key=key, value=value, on_delivery=delivered)
