"""Test which keys of inputs are compared with the partition that Kafka's producers choose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from streams import App, serdes
from streams.common.partitioning import partition_for_key
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.runtime.counters import ThreadCounters
from streams.runtime.tasks.key_placement import FIRST_SAMPLES, SAMPLED_EVERY, KeyPlacementCheck

COUNT = 4


class Message:
    def __init__(self, key: bytes | None) -> None:
        self._key = key

    def key(self) -> bytes | None:
        return self._key


class World:
    def __init__(self, warned_topics: set[tuple[str, str]]) -> None:
        self.warned_topics = warned_topics
        self.counters = ThreadCounters()
        self.fetch_count = 0
        self.is_away = False
        self.check = KeyPlacementCheck(
            "a", self._fetch_partition_counts, self.counters, warned_topics
        )
        self.check.add_partitions([Partition("in", 0), Partition("other", 0)], frozenset(["in"]))

    def _fetch_partition_counts(self) -> dict[str, int]:
        self.fetch_count += 1
        if self.is_away:
            raise OutcomeUnknown("no broker answers")
        return {"in": COUNT, "other": COUNT}

    def read(self, *keys: bytes | None, topic: str = "in") -> None:
        self.check.sample_batch((topic, 0), [Message(key) for key in keys])
        self.check.compare_samples_and_count_misplaced()


@pytest.fixture
def world() -> World:
    return World(set())


def list_keys(*, placed: bool) -> Iterator[bytes]:
    """Yield keys that are in partition 0 by murmur2, or that are not."""
    for number in range(100_000):
        key = f"key-{number}".encode()
        if (partition_for_key(key, COUNT) == 0) is placed:
            yield key


HERE, ELSEWHERE = next(list_keys(placed=True)), next(list_keys(placed=False))


def test_keys_in_another_partition_are_warned_of_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.read(HERE, ELSEWHERE, ELSEWHERE)
    assert "2 of 3 sampled keys of input 'in' are not in the partition that murmur2" in caplog.text
    assert "repartition()" in caplog.text
    world.read(*[ELSEWHERE] * SAMPLED_EVERY)
    again = World(world.warned_topics)
    again.read(ELSEWHERE)
    assert len(caplog.messages) == 1
    assert (world.counters.keys_sampled, world.counters.keys_misplaced) == (4, 3)


def test_the_first_keys_of_a_partition_are_sampled_and_then_one_of_many(world: World) -> None:
    world.read(*[HERE] * (FIRST_SAMPLES + 5))
    assert world.counters.keys_sampled == FIRST_SAMPLES
    for _ in range(3 * SAMPLED_EVERY // 100):
        world.read(*[HERE] * 100)
    assert world.counters.keys_sampled == FIRST_SAMPLES + 3
    assert world.counters.keys_misplaced == 0
    assert world.fetch_count == 1


def test_records_without_a_key_and_other_topics_are_not_sampled(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.read(None, None)
    world.read(ELSEWHERE, topic="other")
    assert world.counters.keys_sampled == 0
    assert caplog.messages == []


def test_samples_wait_for_a_broker_that_is_away(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.is_away = True
    world.read(ELSEWHERE)
    assert world.counters.keys_sampled == 0
    world.is_away = False
    world.check.compare_samples_and_count_misplaced()
    assert world.counters.keys_misplaced == 1
    assert "1 of 1 sampled keys" in caplog.text


def test_inputs_of_steps_with_a_store_are_looked_at_and_no_repartition_topics() -> None:
    app = App("a")
    text: Any = {"key": serdes.string, "value": serdes.string}
    orders = app.stream("orders", **text)
    orders.join(app.table("customers", **text), lambda one, two: one + two).to(
        "joined", value=serdes.string
    )
    app.stream("lines", **text).group_by(lambda k, v: v, key=serdes.string).count()
    app.stream("copied", **text).to("copies")
    found = [sub.keyed_topics for sub in app.topology().subtopologies]
    assert sorted(map(sorted, found)) == [[], [], [], ["customers", "orders"]]
