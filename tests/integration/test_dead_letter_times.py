"""Test that dead letters keep the times of their records, those of global tables included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streams import App, dead_letter, serdes
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

TIMES_MS = [-1, -5, 1, 1_700_000_000_000, -(10**15)]
BOTH: Any = {"key": serdes.string, "value": serdes.string}


def write(topics: Topics, topic: str) -> None:
    """Write a good record, and one that can't be read for each time."""
    producer = Producer({"bootstrap.servers": topics.servers})
    producer.produce(topic, b"good", b"key", partition=0, timestamp=TIMES_MS[-2])
    for time_ms in TIMES_MS:
        producer.produce(topic, b"\xff", b"%d" % time_ms, partition=0, timestamp=time_ms)
    assert producer.flush(HANG_LIMIT_S) == 0


def read_times(topics: Topics, topic: str, source: str) -> list[int]:
    """Return the times of the dead letters of a topic's records, in the order of their offsets."""
    letters = [
        (int(headers["__streams.errors.offset"]), letter)
        for letter in topics.messages(topic)
        if (headers := dict(letter.headers()))["__streams.errors.topic"] == source.encode()
    ]
    assert all(int(letter.key()) == letter.timestamp()[1] for _, letter in letters)
    assert {letter.value() for _, letter in letters} <= {b"\xff"}
    return [letter.timestamp()[1] for _, letter in sorted(letters, key=lambda each: each[0])]


def test_dead_letters_of_a_stream_and_of_a_global_table_keep_the_times_of_their_records(
    topics: Topics, tmp_path: Path
) -> None:
    rates, dead = f"{topics.application}-rates", f"{topics.application}-dead"
    topics.create(rates)
    topics.create(dead)
    for topic in (topics.source, rates):
        write(topics, topic)
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=tmp_path,
        commit_interval_ms=50,
        deserialization_handler=dead_letter(dead),
    )
    table = app.global_table(rates, **BOTH, store="rates")
    stream = app.stream(topics.source, **BOTH)
    found = stream.left_join(table, lambda one, _: one, key=lambda k, v: k, value=serdes.string)
    found.to(topics.target)
    with app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        assert read_times(topics, dead, rates) == TIMES_MS  # Before the first record of a stream.
        topics.wait_for_records(1)
        assert dict(running.store("rates").all()) == {"key": "good"}
        write(topics, rates)
        wait_until(
            lambda: (
                len(read_times(topics, dead, rates)) == 2 * len(TIMES_MS)
                and len(read_times(topics, dead, topics.source)) == len(TIMES_MS)
            ),
            what="dead letters are missing",
        )
        assert running.metrics()["dead_letters"] == 3 * len(TIMES_MS)
    assert read_times(topics, dead, topics.source) == TIMES_MS
    with app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
    assert read_times(topics, dead, rates) == TIMES_MS * 2  # A restart writes none again.
