"""Test topics that match a pattern: they appear and vanish under load while workers are killed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Producer

from streams import App, StreamsError, serdes
from streams import topics as topic_patterns
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S, wait_until
from tests.sampling import draw_seed

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

KEYS = 20
ROUNDS = 2
_LOOK_MS = 300


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

    def wait_until_counted(self, while_waiting: Callable[[], object] = lambda: None) -> None:
        """Wait until all that was written is counted, and no more than that."""
        found: list[Counter[str]] = []

        def is_counted() -> bool:
            while_waiting()
            found[:] = map(self.read_counts, (self.topics.target, self.values))
            return all(each.total() >= self.keys_truth.total() for each in found)

        wait_until(is_counted, what=lambda: f"{found} of {self.keys_truth.total()}")
        assert found == [self.keys_truth, self.values_truth]


def test_topics_of_a_pattern_appear_and_vanish_under_load_and_kills(
    topics: Topics, new_worker: Callable[..., Worker]
) -> None:
    seed = draw_seed("topics of a pattern")
    print(f"{seed=}")
    random = Random(seed)
    load = PatternLoad(topics)
    topics.create(load.name("stays"), load.name("other"))
    workers = [new_worker(kind="pattern", state=f"state-{n}") for n in range(2)]
    for worker in workers:
        worker.start("--metadata-max-age-ms", str(_LOOK_MS))
    load.write("stays", 200)
    load.write("other", 100)
    load.wait_until_counted()
    for _ in range(ROUNDS):
        comes = "comes"  # in the second round made again
        load.write("stays", 100)
        topics.create(load.name(comes))
        load.write(comes, 150)
        killed = workers[random.randrange(2)]
        if random.random() < 0.5:
            time.sleep(random.random() * 2)
        killed.kill()
        load.write("stays", 50)
        killed.start("--metadata-max-age-ms", str(_LOOK_MS))
        load.write(comes, 50)
        load.wait_until_counted()
        topics.delete(load.name(comes))
        load.write("stays", 100)
        if random.random() < 0.5:
            killed = workers[random.randrange(2)]
            killed.kill()
            killed.start("--metadata-max-age-ms", str(_LOOK_MS))
        load.write("other", 50)
        load.wait_until_counted()
    for worker in workers:
        worker.finish()


def start_pattern(topics: Topics, state: Path, **settings: Any) -> Any:
    return build(
        topics.application,
        topics.source,
        topics.target,
        kind="pattern",
        bootstrap_servers=topics.servers,
        state_dir=state,
        commit_interval_ms=50,
        **{"metadata_max_age_ms": _LOOK_MS, **settings},
    ).start()


def test_a_topic_that_is_made_again_at_once_is_read_from_its_first_record(
    topics: Topics, tmp_path: Path
) -> None:
    load = PatternLoad(topics)
    topics.create(load.name("stays"), load.name("again"))
    with start_pattern(topics, tmp_path) as running:
        load.write("stays", 50)
        load.write("again", 100)
        load.wait_until_counted()
        topics.make_again(load.name("again"))
        load.write("again", 30)
        load.write("stays", 30)
        load.wait_until_counted()
        assert running.state != "ERROR"


def test_the_only_topic_of_a_pattern_may_vanish_and_come_back(
    topics: Topics, tmp_path: Path
) -> None:
    load = PatternLoad(topics)
    with start_pattern(topics, tmp_path) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)  # with no task: nothing matches
        topics.create(load.name("only"))
        load.write("only", 100)
        load.wait_until_counted()
        topics.delete(load.name("only"))
        time.sleep(_LOOK_MS / 1_000)
        topics.create(load.name("only"))
        load.write("only", 50)
        load.wait_until_counted()


def test_a_topic_that_two_patterns_match_ends_the_application_by_name(
    topics: Topics, tmp_path: Path
) -> None:
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=tmp_path,
        metadata_max_age_ms=_LOOK_MS,
    )
    for expression in (f"{topics.source}-a.*", f"{topics.source}-.*b"):
        matching = topic_patterns.matching(expression)
        app.stream(matching, key=serdes.string, value=serdes.string).to(topics.target)
    running = app.start()
    running.wait_for("RUNNING", HANG_LIMIT_S)
    topics.create(f"{topics.source}-ab")
    with pytest.raises(StreamsError, match=f"{topics.source}-ab.* matches .* and"):
        running.wait_for("NOT_RUNNING", HANG_LIMIT_S)
    with pytest.raises(StreamsError):
        running.close()


def test_a_start_without_a_topic_that_matches_waits_for_one(topics: Topics, tmp_path: Path) -> None:
    load = PatternLoad(topics)
    with start_pattern(topics, tmp_path) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.create(load.name("first"))
        load.write("first", 40)
        load.wait_until_counted()
        assert len(running._list_tasks()) == 2 * PARTITIONS
