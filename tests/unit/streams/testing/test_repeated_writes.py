"""Test that records which a repartition topic has are not written to it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, TopologyTestDriver, serdes
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import PositionRefused
from streams.runtime.offsets.offset_metadata import RESET_DONE, decode_metadata, encode_metadata
from streams.runtime.offsets.preset_offsets import PRESET_ENTRY
from streams.runtime.threads.commit import CommitStep
from streams.testing.cluster import InMemoryCluster

INPUT, MORE = Partition("in", 0), Partition("more", 0)
REPARTITION = Partition("a-c-repartition", 0)
Offsets = dict[Partition, OffsetAndMetadata]
GUARANTEES = ("exactly_once_v2", "at_least_once")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> InMemoryCluster:
    """Provide the cluster of the next driver."""
    made = InMemoryCluster()
    monkeypatch.setattr("streams.testing.driver.InMemoryCluster", lambda: made)
    return made


def build_app(*inputs: str, middle: bool = False, **settings: Any) -> App:
    """Count values: a repartition topic leads to the store, and another one before it if asked."""
    app = App("a", **settings)
    stream = app.stream(list(inputs or ("in",)), key=serdes.string, value=serdes.string)
    if middle:
        stream = stream.repartition(name="middle").map_values(str.upper, value=serdes.string)
    counts = stream.group_by(lambda key, value: value, key=serdes.string).count(store="c")
    counts.to_stream().to("out")
    return app


def lose_all(offsets: Offsets) -> None:
    offsets.clear()


def lose_input(offsets: Offsets) -> None:
    del offsets[INPUT]


def set_back(offsets: Offsets) -> None:
    offsets[INPUT] = OffsetAndMetadata(0, "")


def set_forward(offsets: Offsets) -> None:
    offsets[INPUT] = OffsetAndMetadata(9, "")


@pytest.mark.parametrize(
    ("lose", "refusal"),
    [
        (lose_all, r"no committed offset for in\[0\].*restore-offsets.*reset"),
        (lose_input, r"no committed offset for in\[0\].*restore-offsets.*reset"),
        (set_back, r"offset 0 of in\[0\] was not committed by .*restore-offsets .*--accept"),
        (set_forward, r"offset 9 of in\[0\] was not committed by .*restore-offsets .*--accept"),
    ],
)
@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("is_purged", [False, True])
def test_an_input_before_a_repartition_topic_is_refused_and_nothing_written(
    cluster: InMemoryCluster,
    lose: Callable[[Offsets], None],
    refusal: str,
    guarantee: str,
    is_purged: bool,
) -> None:
    with TopologyTestDriver(build_app(processing_guarantee=guarantee)) as driver:
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        driver.crash()
        end = cluster.logs[REPARTITION].high_watermark
        if is_purged:
            cluster.logs[REPARTITION].start_offset = end
        lose(cluster.committed_offsets)
        with pytest.raises(PositionRefused, match=refusal):
            driver.restart()
        assert cluster.logs[REPARTITION].high_watermark == end


@pytest.mark.parametrize("topic", ["in", "a-middle-repartition"])
def test_each_sub_topology_of_a_chain_is_refused(cluster: InMemoryCluster, topic: str) -> None:
    with TopologyTestDriver(build_app(middle=True)) as driver:
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        driver.crash()
        del cluster.committed_offsets[Partition(topic, 0)]
        with pytest.raises(PositionRefused, match=rf"no committed offset for {topic}\[0\]"):
            driver.restart()


@pytest.mark.parametrize(
    ("guarantee", "step"),
    [
        ("exactly_once_v2", CommitStep.PRODUCED),
        ("exactly_once_v2", CommitStep.OFFSETS_SENT),
        ("at_least_once", CommitStep.PRODUCED),
    ],
)
def test_an_application_that_died_before_its_first_commit_begins_anew(
    cluster: InMemoryCluster, guarantee: str, step: CommitStep
) -> None:
    with TopologyTestDriver(build_app(processing_guarantee=guarantee)) as driver:
        driver.crash(at=step)
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        assert not driver.is_running
        assert cluster.logs[REPARTITION].high_watermark > 0
        driver.restart()
        assert driver.store("c").get("x") == (1 if guarantee == "exactly_once_v2" else 2)


def test_an_input_that_a_later_version_adds_is_no_refusal(cluster: InMemoryCluster) -> None:
    versions = [("in",), ("in", "more"), ("other",), ("other", "in")]
    for count, inputs in enumerate(versions, 1):
        with TopologyTestDriver(build_app(*inputs)) as driver:
            driver.topic(inputs[-1]).pipe("k", "x", timestamp_ms=1)
            assert driver.store("c").get("x") == count
            driver.crash()


def test_one_of_several_inputs_is_refused_too(cluster: InMemoryCluster) -> None:
    with TopologyTestDriver(build_app("in", "more")) as driver:
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        driver.crash()
        del cluster.committed_offsets[MORE]
        with pytest.raises(PositionRefused, match=r"no committed offset for more\[0\]"):
            driver.restart()


@pytest.mark.parametrize("text", [encode_metadata({}), RESET_DONE, "AQAAAAAAAAAB"])
def test_offsets_of_tools_resets_and_kafka_streams_are_taken(
    cluster: InMemoryCluster, text: str
) -> None:
    with TopologyTestDriver(build_app()) as driver:
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        driver.crash()
        held = cluster.committed_offsets[INPUT]
        cluster.committed_offsets[INPUT] = OffsetAndMetadata(held.offset, text)
        driver.restart()
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        assert driver.store("c").get("x") == 2


def test_offsets_that_were_set_before_the_first_start_are_taken(cluster: InMemoryCluster) -> None:
    with TopologyTestDriver(build_app()) as driver:
        driver.crash()
        cluster.committed_offsets[INPUT] = OffsetAndMetadata(0, "")
        driver.restart()
        assert decode_metadata(cluster.committed_offsets[INPUT].metadata).find_entry(PRESET_ENTRY)
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        assert driver.store("c").get("x") == 1
        driver.crash()
        driver.restart()
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        said = decode_metadata(cluster.committed_offsets[INPUT].metadata)
        assert said.find_entry(PRESET_ENTRY) == 0, "all offsets are the application's own"


def test_without_a_store_behind_the_topic_an_application_may_be_rewound(
    cluster: InMemoryCluster,
) -> None:
    app = App("a")
    app.stream("in", key=serdes.string, value=serdes.string).repartition(name="r").to("out")
    with TopologyTestDriver(app) as driver:
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        driver.crash()
        cluster.committed_offsets[INPUT] = OffsetAndMetadata(0, "")
        driver.restart()
        assert driver.topic("out").read_values() == ["x", "x"]
