"""Test which record the driver takes next: as in Kafka Streams' driver, or as a seed decides."""

from __future__ import annotations

from typing import Any

import pytest

from streams import App, TopologyTestDriver, serdes
from streams.common.topic_partitions import Partition
from streams.testing.cluster import InMemoryCluster
from streams.testing.record_order import TimestampOrder
from tests.unit.streams.testing.apps import build_word_count_app

# Written by Java's PriorityQueue of queues: +queue,timestamp puts a record, -queue took one.
OF_JAVA = """
+1,2 +5,2 -1 +2,1 -2 -5 +4,0 +2,1 -4 +5,0 -5 +4,2 +5,2 +5,2 -2 +5,3 +2,2 -5 +4,3 -2 +4,0 +3,2 +3,3
+3,0 +2,2 -3 +1,0 +3,3 +2,3 -1 -2 -3 +4,0 -4 -2 +3,2 +4,2 +5,3 -3 +3,3 +2,3 +3,3 +0,2 -4 +3,1 -0
+0,3 -0 +0,0 +0,3 -0 +0,0 +1,0 +5,0 +5,3 -1 +4,1 +4,1 +1,2 +2,1 +1,0 +1,3 +0,0 +3,3 -5 -2 -4 -4 +5,2
"""


@pytest.mark.parametrize("history", OF_JAVA.strip().split("\n"))
def test_equal_timestamps_are_taken_as_javas_priority_queue_has_them(history: str) -> None:
    cluster, order = InMemoryCluster(), TimestampOrder()
    at = {Partition(str(number), 0): 0 for number in range(6)}
    for partition in at:
        cluster.create_topic(partition.topic, 1)
    for step in history.split():
        if step[0] == "+":
            queue, timestamp_ms = step[1:].split(",")
            cluster.append_record(Partition(queue, 0), None, None, int(timestamp_ms))
            continue
        found = {p: cluster.logs[p].find_first_committed(position)[0] for p, position in at.items()}
        taken = order.choose_partition(
            {p: message for p, message in found.items() if message is not None}
        )
        assert taken.topic == step[1:]
        at[taken] += 1


def words(seed: int | None) -> list[Any]:
    given = {"lines": 4}
    with TopologyTestDriver(
        build_word_count_app(), partitions=given, seed=seed, stores="memory"
    ) as driver:
        driver.topic("lines").pipe_many([(str(n), f"w{n} x{n}") for n in range(12)])
        return driver.topic("counts-by-word").read_pairs()


def test_without_a_seed_each_record_is_finished_before_the_next() -> None:
    assert [word[1:] for word, _ in words(None)] == [str(n) for n in range(12) for _ in "wx"]


def test_a_seed_interleaves_the_partitions_always_in_the_same_order() -> None:
    assert words(1) == words(1)
    assert len({tuple(words(seed)) for seed in range(5)}) > 1
    assert sorted(words(1)) == sorted(words(None))


@pytest.mark.parametrize("seed", range(5))
def test_the_records_of_a_partition_stay_in_their_order(seed: int) -> None:
    app = App("through")
    stream = app.stream("in", key=serdes.string, value=serdes.int64)
    stream.repartition(name="again", partitions=3).to("out")
    with TopologyTestDriver(app, partitions={"in": 3}, seed=seed) as driver:
        driver.topic("in").pipe_many([(f"k{n % 5}", n) for n in range(50)])
        by_key: dict[str, list[int]] = {}
        for key, value in driver.topic("out").read_pairs():
            by_key.setdefault(key, []).append(value)
    assert by_key == {f"k{n}": list(range(n, 50, 5)) for n in range(5)}


def list_joined(app: App, calls: list[str], seed: int | None) -> list[Any]:
    """Return the results of a stream's record of time 20 and a table's of 10, read at once.

    Their own timestamps, 50 and 100, say the opposite.
    """

    def extract_from_value(record: Any) -> int:
        calls.append(record.value)
        return int(record.value.partition(":")[2])

    text: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
    table = app.table("t", **text, timestamp_extractor=extract_from_value)
    stream = app.stream("s", **text, timestamp_extractor=extract_from_value)
    stream.left_join(table, lambda left, right: f"{left}+{right}").to("out", value=serdes.string)
    with TopologyTestDriver(app, stores="memory", seed=seed) as driver:
        driver.crash()
        driver.topic("s").pipe("k", "s:20", timestamp_ms=50)
        driver.topic("t").pipe("k", "t:10", timestamp_ms=100)
        driver.restart()
        return [value for _, value in driver.topic("out").read_pairs()]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_records_are_taken_in_the_order_of_their_extracted_times(seed: int | None) -> None:
    calls: list[str] = []
    assert list_joined(App("extracts"), calls, seed) == ["s:20+t:10"]
    assert sorted(calls) == ["s:20", "t:10"], "an extractor is called once for a record"
