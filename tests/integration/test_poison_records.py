"""Test that each kind of poison is one dead letter on real brokers, and all else comes out once.

A sample of the matrix in tests/unit/streams/runtime/poison, which has all places and a cluster in
memory.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from coordinator.errors import Code
from streams import App, ErrorContext, dead_letter, serdes
from tests.brokers import IN_CI
from tests.conformance import batches
from tests.conformance.calls import produce, settled
from tests.conformance.wire import Client
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

TEXT: Any = {"key": serdes.string, "value": serdes.string}
NOW_MS = 1_700_000_000_000
STAGES = {
    b"\xff": "deserialization",
    b"no time": "deserialization",
    b"two names": "deserialization",
    b"raise": "processing",
    b"surrogate": "production",
    b"object": "production",
    b"too large": "production",
    b"10 MB": "production",
    b"illegal topic": "production",
}
"""The stage at which each value fails."""
MADE = {"surrogate": "\ud800", "object": object(), "too large": "x" * 2_000_000}
CHOSEN = {"illegal topic": "a/b"}


def change(value: str) -> Any:
    if value == "raise":
        raise ValueError("not this one")
    return "x" * 10_000_000 if value == "10 MB" else MADE.get(value, value)


def write(topics: Topics) -> None:
    """Write each kind of poison between good records."""
    producer = Producer({"bootstrap.servers": topics.servers})
    for number, poison in enumerate(STAGES):
        producer.produce(topics.source, b"good %d" % number, b"k", 0, timestamp=NOW_MS)
        if poison != b"two names":
            time_ms = -1 if poison == b"no time" else NOW_MS
            producer.produce(topics.source, poison, b"k", 0, timestamp=time_ms)
    assert producer.flush(HANG_LIMIT_S) == 0
    with Client(topics.servers) as client:
        data = batches.encode((b"k", b"two names"), headers=[(b"\xe9", b"1"), (b"\xfc", b"2")])
        answered = settled(
            partial(produce, client, topics.source, data), passing=(Code.NOT_LEADER_OR_FOLLOWER,)
        )
        assert answered.error_code == Code.NONE


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_each_poison_is_one_dead_letter_and_all_others_come_out_once(
    topics: Topics, tmp_path: Path, guarantee: Any
) -> None:
    dead = f"{topics.application}-dead"
    topics.create(dead)
    write(topics)
    asked: list[ErrorContext] = []

    def handle(failure: ErrorContext) -> Any:
        asked.append(failure)
        return dead_letter(dead)

    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=tmp_path,
        commit_interval_ms=50,
        processing_guarantee=guarantee,
        deserialization_handler=handle,
        processing_handler=handle,
        production_handler=handle,
    )
    stream = app.stream(topics.source, **TEXT, name="read")
    stream.map_values(change, value=serdes.string).to(
        lambda record: CHOSEN.get(str(record.value), topics.target), name="write", **TEXT
    )
    good = {b"good %d" % number for number in range(len(STAGES))}
    with app.start() as running:
        wait_until(
            lambda: len(list(topics.messages(dead))) == len(STAGES), what="dead letters are missing"
        )
        topics.wait_for_records(len(good))
        assert running.metrics()["dead_letters"] == len(STAGES)
    assert Counter(m.value() for m in topics.messages(topics.target)) == Counter(good)
    letters = {m.value(): m for m in topics.messages(dead)}
    assert letters.keys() == STAGES.keys()
    assert letters[b"no time"].timestamp()[1] == -1
    assert {each.source_value: str(each.stage) for each in asked} == STAGES
