"""Write records whose values count up within their key, as long as the soak lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from random import Random

from confluent_kafka import Producer

from streams import serdes
from tests.processes import HANG_LIMIT_S
from tests.soak_app.topology import LINES

KEYS = 200
_BATCH = 50


class Load:
    """Writes in a thread of its own; `written[key]` is the number of records that a key has.

    `now_ms` is the broker's clock: records that are days old tell it of a producer long gone.
    """

    def __init__(
        self, servers: str, records_per_second: int, random: Random, now_ms: Callable[[], int]
    ) -> None:
        self.written = {f"key-{number}": 0 for number in range(KEYS)}
        self._random = random
        self._now_ms = now_ms
        self._pause_s = _BATCH / records_per_second
        # Idempotent: a broker that is killed must not make the input itself wrong.
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "message.timeout.ms": 600_000,
                # Its own answers get lost too: nobody waits a minute for each.
                "socket.timeout.ms": 5_000,
                "metadata.recovery.strategy": "none",
            }
        )
        self._stop = threading.Event()
        self._failed: list[str] = []
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    @property
    def total(self) -> int:
        return sum(self.written.values())

    def finish(self) -> None:
        """Stop, and wait until all is written. Raises RuntimeError if some could not be."""
        self._stop.set()
        self._thread.join()
        left = self._producer.flush(HANG_LIMIT_S)
        if left or self._failed:
            raise RuntimeError(f"{left} records not written, {self._failed[:3]}")

    def _run(self) -> None:
        keys = list(self.written)
        while not self._stop.is_set():
            for _ in range(_BATCH):
                key = self._random.choice(keys)
                value = serdes.int64.serialize(self.written[key])
                self._producer.produce(
                    LINES, value, key, on_delivery=self._delivered, timestamp=self._now_ms()
                )
                self.written[key] += 1
            self._producer.poll(0)
            time.sleep(self._pause_s)

    def _delivered(self, error: object, _: object) -> None:
        if error is not None:
            self._failed.append(str(error))
