"""Test that an application whose stores hold more than its committed offsets prove is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Store, StreamsError, TopologyTestDriver, serdes
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.runtime.offsets.offset_metadata import (
    RESET_BEGUN,
    RESET_DONE,
    decode_metadata,
    encode_metadata,
)
from streams.runtime.threads.commit import CommitStep
from streams.testing.cluster import InMemoryCluster
from tests.unit.streams.testing.apps import build_counting_app, build_upper_app

INPUT = Partition("in", 0)
STORES: dict[str, str | Store] = {
    "disk": "c",
    "memory": Store.in_memory("c"),
    "unlogged": Store.persistent("c", logged=False),
}
Offsets = dict[Partition, OffsetAndMetadata]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> InMemoryCluster:
    """Provide the cluster of the next driver."""
    made = InMemoryCluster()
    monkeypatch.setattr("streams.testing.driver.InMemoryCluster", lambda: made)
    return made


def restart_with(
    cluster: InMemoryCluster, app: App, change: Callable[[Offsets], None], *, count: int = 3
) -> Any:
    """Count records, change the committed offsets while nothing runs, restart and count one more.

    Returns the count in the store.
    """
    with TopologyTestDriver(app) as driver:
        for _ in range(count):
            driver.topic("in").pipe("k", "x", timestamp_ms=1)
        driver.crash()
        change(cluster.committed_offsets)
        driver.restart()
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        return driver.store("c").get("k")


def rewind(offsets: Offsets) -> None:
    """Do what `kafka-consumer-groups --reset-offsets` does: it leaves the metadata empty."""
    offsets[INPUT] = OffsetAndMetadata(1, "")


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_a_task_whose_offsets_have_expired_is_refused(
    cluster: InMemoryCluster, store: str | Store
) -> None:
    refusal = r"group 'counting' has no committed offset for in\[0\].*'c'.*restore-offsets.*reset"
    with pytest.raises(StreamsError, match=refusal):
        restart_with(cluster, build_counting_app(store), dict.clear)


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
@pytest.mark.parametrize("offset", [1, 4])
def test_an_offset_that_a_tool_has_set_is_refused(
    cluster: InMemoryCluster, store: str | Store, offset: int
) -> None:
    def change(offsets: Offsets) -> None:
        offsets[INPUT] = OffsetAndMetadata(offset, "")

    with pytest.raises(StreamsError, match=rf"offset {offset} of in\[0\] was not committed by"):
        restart_with(cluster, build_counting_app(store), change)


@pytest.mark.parametrize("store", ["c", Store.in_memory("c")], ids=["disk", "memory"])
def test_an_older_offset_that_was_put_back_is_refused(
    cluster: InMemoryCluster, store: str | Store
) -> None:
    def put_back(offsets: Offsets) -> None:
        offsets[INPUT] = OffsetAndMetadata(1, encode_metadata({"c": 1}, 1))

    with pytest.raises(StreamsError, match=r"older than its state: .* stood at 1, and store 'c'"):
        restart_with(cluster, build_counting_app(store), put_back)


@pytest.mark.parametrize("change", [dict.clear, rewind], ids=["expired", "rewound"])
def test_at_least_once_is_refused_too(
    cluster: InMemoryCluster, change: Callable[[Offsets], None]
) -> None:
    app = build_counting_app(processing_guarantee="at_least_once")
    with pytest.raises(StreamsError, match=r"group 'counting' .*in"):
        restart_with(cluster, app, change)


def test_at_least_once_a_changelog_ahead_of_its_offsets_is_no_refusal(
    cluster: InMemoryCluster,
) -> None:
    app = build_counting_app(processing_guarantee="at_least_once")
    with TopologyTestDriver(app) as driver:
        driver.crash(at=CommitStep.PRODUCED)
        driver.topic("in").pipe("k", "x")
        assert not driver.is_running
        assert cluster.committed_offsets[INPUT].offset == 0, "committed before the changelog"
        driver.restart()
        assert driver.store("c").get("k") == 2, "at least once"


def test_a_table_kept_by_its_own_topic_is_refused(cluster: InMemoryCluster) -> None:
    app = App("counting", topology_optimization="all")
    app.table("in", key=serdes.string, value=serdes.string, store="c").to_stream().to("out")
    with pytest.raises(StreamsError, match=r"no committed offset for in\[0\]"):
        restart_with(cluster, app, dict.clear)


def test_an_application_without_state_may_be_rewound(cluster: InMemoryCluster) -> None:
    with TopologyTestDriver(build_upper_app()) as driver:
        driver.topic("in").pipe("k", "x")
        driver.crash()
        cluster.committed_offsets[INPUT] = OffsetAndMetadata(0, "")
        driver.restart()
        assert driver.topic("out").read_values() == ["X", "X"]
        driver.crash()
        cluster.committed_offsets.clear()
        driver.restart()
        assert driver.topic("out").read_values() == ["X"]


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
@pytest.mark.parametrize(
    "step", [CommitStep.PROCESSED, CommitStep.PRODUCED, CommitStep.OFFSETS_SENT]
)
def test_an_application_that_died_in_its_first_transaction_begins_anew(
    cluster: InMemoryCluster, store: str | Store, step: CommitStep
) -> None:
    with TopologyTestDriver(build_counting_app(store)) as driver:
        driver.crash(at=step)
        driver.topic("in").pipe("k", "x")
        driver.crash(at=step)
        driver.restart()  # it finds positions that move over a marker
        assert not driver.is_running
        assert not cluster.committed_offsets
        driver.restart()
        assert driver.store("c").get("k") == 1


def test_an_offset_of_kafka_streams_is_taken_as_it_is(cluster: InMemoryCluster) -> None:
    def bring_over(offsets: Offsets) -> None:
        offsets[INPUT] = OffsetAndMetadata(3, "AgAAAAAAAAAB")  # version 2, partition time 1

    assert decode_metadata("AgAAAAAAAAAB").partition_time_ms == 1
    assert restart_with(cluster, build_counting_app(), bring_over) == 4


def build_version(*inputs: str, more_stores: bool = False) -> App:
    app = App("counting")
    counts = (
        app.stream(list(inputs), key=serdes.string, value=serdes.string)
        .group_by_key()
        .count(store=Store.in_memory("c"))
    )
    stream = counts.to_stream()
    if more_stores:
        stream.group_by_key().reduce(max, store=Store.in_memory("d"))
    stream.to("out")
    return app


def test_an_input_and_a_store_that_a_later_version_adds_are_no_refusal(
    cluster: InMemoryCluster,
) -> None:
    versions = [
        (build_version("in"), "in", 1),
        (build_version("in", "more"), "more", 2),
        (build_version("in", "more", more_stores=True), "in", 3),
        (build_version("other"), "other", 4),  # takes the place of both
    ]
    for app, topic, count in versions:
        with TopologyTestDriver(app) as driver:
            driver.topic(topic).pipe("k", "x", timestamp_ms=1)
            assert driver.store("c").get("k") == count
            driver.crash()


def test_a_reset_that_was_begun_is_to_be_ended_also_without_state(cluster: InMemoryCluster) -> None:
    with TopologyTestDriver(build_upper_app()) as driver:
        driver.topic("in").pipe("k", "x")
        driver.crash()
        cluster.committed_offsets[INPUT] = OffsetAndMetadata(0, RESET_BEGUN)
        with pytest.raises(StreamsError, match="a reset of 'upper' was begun, and not ended"):
            driver.restart()


@pytest.mark.parametrize(
    ("store", "refusal"),
    [
        ("c", "older than its state"),
        (STORES["unlogged"], "was reset, and store 'c' of the time before is here"),
    ],
)
def test_state_of_the_time_before_a_reset_is_refused(
    cluster: InMemoryCluster, store: str | Store, refusal: str
) -> None:
    def reset(offsets: Offsets) -> None:
        offsets[INPUT] = OffsetAndMetadata(0, RESET_DONE)

    with pytest.raises(StreamsError, match=refusal):
        restart_with(cluster, build_counting_app(store), reset)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (lambda offsets, older: offsets.pop(Partition("more", 0)), r"no committed offset for more"),
        (
            lambda offsets, older: offsets.update({Partition("more", 0): older}),
            r"offset of more\[0\] was committed .* before those of its other inputs",
        ),
    ],
    ids=["lost", "put back"],
)
def test_one_of_several_inputs_is_refused_too(
    cluster: InMemoryCluster, change: Callable[[Offsets, OffsetAndMetadata], Any], refusal: str
) -> None:
    with TopologyTestDriver(build_version("in", "more")) as driver:
        driver.topic("more").pipe("k", "x", timestamp_ms=1)
        older = cluster.committed_offsets[Partition("more", 0)]
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        driver.crash()
        change(cluster.committed_offsets, older)
        with pytest.raises(StreamsError, match=refusal):
            driver.restart()


def test_an_input_that_was_left_out_for_a_while_goes_on_where_it_was(
    cluster: InMemoryCluster,
) -> None:
    for count, inputs in enumerate((["in", "more"], ["in"], ["in", "more"]), 1):
        with TopologyTestDriver(build_version(*inputs)) as driver:
            driver.topic(inputs[-1]).pipe("k", "x", timestamp_ms=1)
            assert driver.store("c").get("k") == count
            driver.crash()


def test_the_guarantee_may_be_switched_after_a_crash_at_least_once(
    cluster: InMemoryCluster,
) -> None:
    with TopologyTestDriver(build_counting_app(processing_guarantee="at_least_once")) as driver:
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        driver.crash(at=CommitStep.PRODUCED)
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        assert not driver.is_running
    with TopologyTestDriver(build_counting_app(processing_guarantee="exactly_once_v2")) as driver:
        assert driver.store("c").get("k") == 3, "one was counted and not committed, as it may be"
        driver.crash()
        assert not decode_metadata(cluster.committed_offsets[INPUT].metadata).is_at_least_once
        rewind(cluster.committed_offsets)
        with pytest.raises(StreamsError, match="was not committed by group"):
            driver.restart()
