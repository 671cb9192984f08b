"""Write into topics that match a pattern, let them come and go, and know what is to be counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from random import Random

from confluent_kafka import Producer

from tests.integration.cluster import Topics, Worker
from tests.processes import HANG_LIMIT_S, wait_until

KEYS = 20
LOOK_MS = 300
"""How often the leader looks for topics that match (`metadata_max_age_ms`)."""
_ROUNDS = 2


class PatternLoad:
    """Writes into topics that match the pattern of the worker, and knows what is to be counted."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        self.values = f"{topics.target}-values"
        topics.create(self.values)
        self.keys_truth: Counter[str] = Counter()
        self.values_truth: Counter[str] = Counter()
        self.producer = Producer({"bootstrap.servers": topics.servers, "linger.ms": 5})

    def name(self, suffix: str) -> str:
        return f"{self.topics.source}-{suffix}"

    def write(self, suffix: str, records: int) -> None:
        """Write records into a topic; when this returns, the broker has them."""
        for number in range(records):
            key, value = f"key-{number % KEYS}", f"{suffix}-{number % 7}"
            self.producer.produce(self.name(suffix), value, key)
            self.keys_truth[key] += 1
            self.values_truth[value] += 1
        assert self.producer.flush(HANG_LIMIT_S) == 0

    def read_counts(self, topic: str) -> Counter[str]:
        """Return the last count of each key of an output that is committed."""
        pairs = self.topics.committed(topic)
        return Counter({pair.key: int.from_bytes(pair.value, "big") for pair in pairs})

    def wait_until_counted(self, *, exactly: bool = True) -> None:
        """Wait until all that was written is counted, and if it is to be `exactly`, no more."""
        found: list[Counter[str]] = []

        def is_counted() -> bool:
            found[:] = map(self.read_counts, (self.topics.target, self.values))
            return found[0] >= self.keys_truth and found[1] >= self.values_truth

        wait_until(is_counted, what=lambda: f"{found} of {self.keys_truth.total()}")
        if exactly:
            assert found == [self.keys_truth, self.values_truth]


def let_topics_come_and_go(
    load: PatternLoad, workers: Sequence[Worker], random: Random, *, exactly: bool = True
) -> None:
    """Let a topic appear and vanish twice under load, while workers are killed, and end them.

    All records are counted, and if it is to be `exactly`, each once.
    """
    topics = load.topics
    topics.create(load.name("stays"), load.name("other"))
    for worker in workers:
        worker.start("--metadata-max-age-ms", str(LOOK_MS))
    load.write("stays", 200)
    load.write("other", 100)
    load.wait_until_counted()
    for _ in range(_ROUNDS):
        comes = load.name("comes")  # in the second round made again
        load.write("stays", 100)
        topics.create(comes)
        load.write("comes", 150)
        killed = random.choice(workers)
        if random.random() < 0.5:
            time.sleep(random.random() * 2)
        killed.kill()
        load.write("stays", 50)
        killed.start("--metadata-max-age-ms", str(LOOK_MS))
        load.write("comes", 50)
        load.wait_until_counted(exactly=exactly)
        topics.delete(comes)
        load.write("stays", 100)
        if random.random() < 0.5:
            killed = random.choice(workers)
            killed.kill()
            killed.start("--metadata-max-age-ms", str(LOOK_MS))
        load.write("other", 50)
        load.wait_until_counted(exactly=exactly)
        wait_until(lambda: comes not in topics.list_names(), what=f"{comes} is still there")  # noqa: B023
    for worker in workers:
        worker.finish()
