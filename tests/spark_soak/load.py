"""Write so many records a second, for as long as reconciliations run."""

from __future__ import annotations

import threading
import time
from random import Random

from confluent_kafka import Producer

from streams import serdes
from tests.spark_soak.topology import KEYS

_EVERY_S = 0.02
_FLUSH_S = 120.0


class Load:
    """Writes to a topic in a thread of its own until `finish`; `written` counts the records."""

    def __init__(self, servers: str, topic: str, rate: int, random: Random) -> None:
        self.written = 0
        self._topic = topic
        self._rate = rate
        self._random = random
        self._keys = [f"key-{number}" for number in range(KEYS)]
        # Idempotent: what is written twice would be the load's error and not the application's.
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 20,
                "queue.buffering.max.messages": 1_000_000,
                "delivery.report.only.error": True,
                "on_delivery": self._failed_with,
                "metadata.recovery.strategy": "none",
            }
        )
        self._failed: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Stop, and wait until all is written. Raises RuntimeError if some could not be."""
        self._stop.set()
        self._thread.join()
        left = self._producer.flush(_FLUSH_S)
        if left or self._failed:
            raise RuntimeError(f"{left} records not written, {self._failed[:3]}")

    def write(self, key: str) -> None:
        """Write one record more after `finish`, delivered when this returns."""
        self._producer.produce(self._topic, serdes.int64.serialize(self.written), key)
        self.written += 1
        self.finish()

    def end(self) -> None:
        """Stop the load wherever it is."""
        self._stop.set()
        self._producer.purge()

    def _run(self) -> None:
        """Write at once what should be there by now.

        So a pause is made up for, like a real source's.
        """
        began = time.monotonic()
        while not self._stop.wait(_EVERY_S):
            due = int((time.monotonic() - began) * self._rate)
            for key in self._random.choices(self._keys, k=due - self.written):
                self._producer.produce(self._topic, serdes.int64.serialize(self.written), key)
                self.written += 1
            self._producer.poll(0)

    def _failed_with(self, error: object, _: object) -> None:
        if error is not None:
            self._failed.append(str(error))
