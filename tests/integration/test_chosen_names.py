"""Test that a record whose topic can't be written is one dead letter, and others are written.

A function of the record chooses a topic: one that exists, that does not, or that none can be.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streams import App, StreamsError, serdes
from streams.settings.exception_handlers import dead_letter
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1)]

TEXT: Any = {"key": serdes.string, "value": serdes.string}
REMEMBERED_MS = 1_500
ILLEGAL = {"illegal": "credit card", "too long": "x" * 250, "empty": "", "no text": None}
BAD = ["missing", *ILLEGAL, "missing"]


class Routing:
    """Runs an application whose records choose the topic that they are written to."""

    def __init__(self, topics: Topics, state: Path, guarantee: str) -> None:
        self.topics, self.dead = topics, f"{topics.application}-dead"
        self.missing = f"{topics.application}-missing"
        topics.create(self.dead)
        self._names = {**ILLEGAL, "missing": self.missing}
        self._settings: dict[str, Any] = {
            "bootstrap_servers": topics.servers,
            "state_dir": state,
            "processing_guarantee": guarantee,
            "commit_interval_ms": 50,
            "metadata_max_age_ms": REMEMBERED_MS,
        }

    def choose(self, record: Any) -> Any:
        return self._names.get(record.value, self.topics.target)

    def start(self, handler: Any) -> Any:
        app = App(self.topics.application, production_handler=handler, **self._settings)
        app.stream(self.topics.source, **TEXT).to(self.choose, name="route")
        return app.start()

    def write(self, *values: str) -> None:
        producer = Producer({"bootstrap.servers": self.topics.servers})
        for value in values:
            producer.produce(self.topics.source, value, "k", 0)
        assert producer.flush(HANG_LIMIT_S) == 0

    def read(self, topic: str) -> list[str]:
        return [message.value().decode() for message in self.topics.messages(topic)]


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
def test_good_records_are_written_once_and_each_other_one_is_a_dead_letter(
    topics: Topics, tmp_path: Path, guarantee: str
) -> None:
    routing = Routing(topics, tmp_path, guarantee)
    good = [f"good {number}" for number in range(len(BAD) * 5)]
    with routing.start(dead_letter(routing.dead)) as running:
        for number, bad in enumerate(BAD):
            routing.write(*good[number * 5 : number * 5 + 5], bad)
        wait_until(lambda: len(routing.read(routing.dead)) >= len(BAD), what="the dead letters")
        wait_until(lambda: len(routing.read(topics.target)) >= len(good), what="the good records")
        # Nothing of the batches is repeated, also at least once.
        assert running.metrics()["recoveries"] == 0
        assert routing.read(topics.target) == good
        assert routing.read(routing.dead) == BAD
        topics.create(routing.missing)
        began_s = time.monotonic()

        def is_written() -> bool:
            routing.write("missing")
            return bool(routing.read(routing.missing))

        wait_until(is_written, what="a record for the topic that is there now")
        assert time.monotonic() - began_s < REMEMBERED_MS / 1_000 + 10
    # Each was written to the topic, or is a dead letter of the time before it was looked up again.
    others = routing.read(routing.dead)[len(BAD) :] + routing.read(routing.missing)
    assert set(others) == {"missing"}


@pytest.mark.parametrize("bad", ["missing", "illegal", "too long"])
def test_by_default_the_thread_ends_within_seconds_with_record_and_topic(
    topics: Topics, tmp_path: Path, bad: str
) -> None:
    routing = Routing(topics, tmp_path, "exactly_once_v2")
    routing.write("good", bad, "good")
    began_s = time.monotonic()
    running = routing.start("fail")
    wait_until(lambda: running.state == "ERROR", timeout_s=20, what="the end")
    assert time.monotonic() - began_s < 15
    with pytest.raises(StreamsError) as error:
        running.close()
    name = {**ILLEGAL, "missing": routing.missing}[bad]
    for part in (f"step 'route' can't write {topics.source}[0]@1: ", str(name)):
        assert part in str(error.value), error.value
    assert routing.read(topics.target) == []
