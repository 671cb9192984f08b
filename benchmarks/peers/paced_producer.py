"""Write records at a fixed rate, each with the time at which it was due as its timestamp.

    python -m benchmarks.peers.paced_producer SERVERS TOPIC PARTITIONS RATE SECONDS

Who is held up sends what was due meanwhile at once and goes on by the same schedule, so that a
stall counts for every record that it delayed: no coordinated omission. It prints, as JSON, how many
records were sent, and how late the client was handed them.
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Producer

from benchmarks.figures import percentile

VALUE_BYTES = 100
_TICK_S = 0.001
_KEYS = 10_000


def send_paced(servers: str, topic: str, partitions: int, rate: int, seconds: float) -> list[float]:
    """Send `rate` records a second, and return by how many ms each was handed over late."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 1,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.list_topics(topic, 30)
    value = b"v" * VALUE_BYTES
    total, sent, late_ms = int(rate * seconds), 0, []
    begin_s = time.time() + 0.05
    while sent < total:
        now_s = time.time()
        due = min(int((now_s - begin_s) * rate) + 1, total)
        while sent < due:
            due_s = begin_s + sent / rate
            key = f"key-{sent % _KEYS:07d}"
            producer.produce(topic, value, key, sent % partitions, timestamp=int(due_s * 1_000))
            late_ms.append((now_s - due_s) * 1_000)
            sent += 1
        producer.poll(0)
        time.sleep(_TICK_S)
    if producer.flush(60):
        raise RuntimeError("the records could not be written in 60 s")
    return late_ms


def main() -> None:
    """Send what the command line says, and print how late it was sent."""
    servers, topic, partitions, rate, seconds = sys.argv[1:]
    late_ms = sorted(send_paced(servers, topic, int(partitions), int(rate), float(seconds)))
    print(json.dumps({"sent": len(late_ms), "late_p99_ms": percentile(late_ms, 0.99)}))


if __name__ == "__main__":
    main()
