"""Test that the topologies write what is expected of them, and that a wrong output is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.peers.expected import Expected, find_difference
from benchmarks.peers.inputs import Feed
from benchmarks.peers.topologies import Topics
from benchmarks.peers.worker import create_app
from benchmarks.peers.workloads import PARTITIONS, Workload, create_workloads
from streams import TopologyTestDriver, serdes

BEGIN_MS = 1_700_000_400_000 // 3_600_000 * 3_600_000
TOPICS = Topics("left", "right", "output")
RECORDS, KEYS = 400, 20
_NUMBERS_EACH = 501
"""So few keys return after a second, as 10,000 keys do, if the records are so far apart."""


def shrink_feed(feed: Feed) -> Feed:
    """Return a feed of few keys, over the time of the whole one; a table has its share of rows."""
    records = feed.records if feed.records <= 4 * RECORDS and feed.delay_ms >= 0 else 0
    return replace(
        feed,
        records=records or feed.records * KEYS // feed.keys,
        keys=KEYS,
        every=feed.every * _NUMBERS_EACH,
    )


WORKLOADS = [
    replace(each, feeds=tuple(map(shrink_feed, each.feeds))) for each in create_workloads(RECORDS)
]


def expect(workload: Workload) -> Expected:
    """Return what a workload must write."""
    feeds = workload.feeds
    return workload.expect([each.generate_records(BEGIN_MS, PARTITIONS) for each in feeds])


def run_in_driver(workload: Workload, state: Path) -> list[tuple[bytes, bytes | None]]:
    """Run a workload without a broker, by the timestamps of its inputs, and return its output."""
    app = create_app(workload.topology, "localhost:9", "peer", state, TOPICS)
    named = zip(TOPICS, workload.feeds, strict=False)
    inputs = [
        (each.timestamp_ms, topic, each)
        for topic, feed in named
        for each in feed.generate_records(BEGIN_MS, PARTITIONS)
    ]
    inputs.sort(key=lambda found: found[:2])
    partitions = dict.fromkeys(TOPICS[: len(workload.feeds)], PARTITIONS)
    with TopologyTestDriver(app, partitions=partitions, stores="memory") as driver:
        for timestamp_ms, topic, each in inputs:
            driver.topic(topic).pipe(
                each.key, each.value, timestamp_ms=timestamp_ms, partition=each.partition
            )
        output = driver.topic(TOPICS.output, key=serdes.bytes, value=serdes.bytes)
        return output.read_pairs()


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.name)
def test_a_topology_writes_what_is_expected_of_it(workload: Workload, tmp_path: Path) -> None:
    expected = expect(workload)
    written = run_in_driver(workload, tmp_path)
    assert find_difference(expected, written) is None
    assert expected.final, "nothing would be compared"


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.name)
def test_a_wrong_output_is_found(workload: Workload, tmp_path: Path) -> None:
    expected = expect(workload)
    right = run_in_driver(workload, tmp_path)
    key, value = right[-1]
    assert value is not None
    changed = find_difference(expected, [*right[:-1], (key, bytes(len(value)))])
    assert changed is not None
    assert "1 keys have wrong final values" in changed
    assert find_difference(expected, right[:-1]) is not None
    repeated = find_difference(expected, [right[0], *right])
    if expected.at_least == expected.at_most:
        assert repeated == f"{len(right) + 1} records, expected {len(right)} to {len(right)}"


def test_a_key_that_should_not_be_there_is_found() -> None:
    expected = Expected({b"a": b"1"}, 1, 2)
    assert find_difference(expected, [(b"a", b"1"), (b"b", b"2")]) is not None
    assert find_difference(expected, [(b"b", None), (b"a", b"1")]) is None
