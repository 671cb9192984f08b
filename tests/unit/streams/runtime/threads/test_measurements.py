"""Test what a stream thread measures a slice at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams import App, serdes
from streams.common.topic_partitions import Partition
from streams.runtime.tasks.partition_group import (
    NEVER_WAIT,
    PartitionGroup,
    RecordOrderSettings,
    SinglePartitionQueue,
)
from streams.runtime.threads.measurements import (
    LATENCY_BOUNDS_S,
    LatencyHistogram,
    ThreadMeasurements,
)
from streams.runtime.threads.source_measurements import SAMPLE_RECORDS, sample_records
from streams.topology.compile import compile_subtopology
from tests.unit.streams.bound import BoundTask
from tests.unit.streams.runtime.fakes import Clock
from tests.unit.streams.runtime.tasks.test_partition_group import Consumer
from tests.unit.streams.runtime.world import World, build_counting_topology

PARTITION = Partition("in", 0)


class Message:
    def __init__(self, topic: str, timestamp_ms: int, value: bytes = b"") -> None:
        self._topic, self._timestamp_ms = topic, timestamp_ms
        self._value = value

    def __len__(self) -> int:
        return len(self._value)

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return self._value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return [("h", b"v"), ("n", None)] if self._value == b"with headers" else None

    def topic(self) -> str:
        return self._topic

    def timestamp(self) -> tuple[int, int]:
        return 1, self._timestamp_ms


def run_of(topic: str, *timestamps_ms: int) -> tuple[object, list[Message]]:
    return object(), [Message(topic, each) for each in timestamps_ms]


def list_consumed(measured: ThreadMeasurements) -> dict[tuple[str, str], int]:
    return {source: each.records for source, each in measured.sources.items()}


def test_a_latency_counts_in_its_bucket_and_in_all_that_are_larger() -> None:
    histogram = LatencyHistogram()
    for latency_s in (0.005, 0.02, -7.0, 10_000.0):
        histogram.observe(latency_s)
    cumulated = dict(histogram.cumulate_counts())
    assert cumulated["0.005"] == 2
    assert cumulated["0.01"] == 2
    assert cumulated["0.025"] == cumulated["3600.0"] == 3
    assert cumulated["+Inf"] == 4
    assert histogram.sum_s == pytest.approx(10_000.025)
    assert len(cumulated) == len(LATENCY_BOUNDS_S) + 1


def test_records_are_summed_by_task_and_topic_and_seconds_by_task() -> None:
    measured = ThreadMeasurements(latencies_at_commit=True, host=Clock())
    measured.add_slice_and_sample("0_0", [run_of("a", 1, 2), run_of("b", 3)], 0.25, now_ms=10)
    measured.add_slice_and_sample("0_0", [run_of("a", 4)], 0.5, now_ms=10)
    measured.add_slice_and_sample("0_1", [], 1.0, now_ms=10)
    measured.observe_slices()
    assert list_consumed(measured) == {("0_0", "a"): 3, ("0_0", "b"): 1}
    assert measured.seconds_by_task == {"0_0": 0.75, "0_1": 1.0}
    assert measured.records_by_task == {"0_0": 4}
    assert measured.timings.process.total == 2, "timers alone are no slice of records"


def test_dropped_records_are_counted_by_task_timers_included() -> None:
    measured = ThreadMeasurements(latencies_at_commit=True, host=Clock())
    measured.add_slice_and_sample("0_0", [run_of("a", 1, 2, 3)], 0.25, now_ms=10, dropped=2)
    measured.add_slice_and_sample("0_0", [], 0.25, now_ms=10, dropped=1)
    measured.add_slice_and_sample("0_1", [run_of("a", 4)], 0.5, now_ms=10)
    measured.observe_slices()
    dropped = {task: each.dropped_total for task, each in measured.timings_by_task.items()}
    assert dropped == {"0_0": 3, "0_1": 0}
    read = measured.timings_by_task["0_0"]
    assert read.process.total == 1, "timers alone are no slice of records"
    assert read.process_records.read_figures().ratio == pytest.approx(3 / 30)


def test_a_latency_ends_with_the_commit_of_the_transaction() -> None:
    measured = ThreadMeasurements(latencies_at_commit=True, host=Clock())
    measured.add_slice_and_sample("0_0", [run_of("a", 1_000, 1_900)], 0.1, now_ms=2_000)
    measured.add_slice_and_sample("0_1", [run_of("a", 1_500)], 0.1, now_ms=2_000)
    assert measured.latency.sum_s == 0
    measured.drop_uncommitted_slices("0_1")
    measured.observe_times_until_commit(now_ms=3_000)
    measured.observe_times_until_commit(now_ms=9_000)
    assert measured.latency.sum_s == pytest.approx(2.0)
    assert dict(measured.latency.cumulate_counts())["+Inf"] == 1


def test_a_latency_ends_with_the_slice_where_results_can_be_read_before_the_commit() -> None:
    measured = ThreadMeasurements(latencies_at_commit=False, host=Clock())
    measured.add_slice_and_sample("0_0", [run_of("a", 1_000), run_of("b", 7)], 0.1, now_ms=2_000)
    measured.add_slice_and_sample("0_0", [run_of("a", -1)], 0.1, now_ms=2_000)
    measured.add_slice_and_sample("0_0", [], 0.1, now_ms=2_000)
    assert measured.latency.sum_s == pytest.approx(1.0)
    assert dict(measured.latency.cumulate_counts())["+Inf"] == 1, (
        "a record without a time has no latency"
    )


def test_a_loop_measures_its_records_its_lags_and_its_commits(tmp_path: Path) -> None:
    world = World(build_counting_topology(), tmp_path, partitions=2)
    world.load("x", "x", "x", key="a", partition=0)
    world.load("x", key="b", partition=1)
    world.run_until(lambda: world.consumed(0) and world.consumed(1))
    measured = world.loop.measurements
    assert list_consumed(measured) == {("0_0", "in"): 3, ("0_1", "in"): 1}
    assert measured.timings.process_records.sum == 4, "a commit observes the slices before it"
    assert sorted(measured.seconds_by_task) == ["0_0", "0_1"]
    assert dict(measured.latency.cumulate_counts())["+Inf"] > 0
    assert set(measured.lags) == {Partition("in", 0), Partition("in", 1)}


def test_bytes_of_records_are_counted_as_kafka_streams_does() -> None:
    measured = ThreadMeasurements(latencies_at_commit=True, host=Clock())
    messages = [Message("topic", 1, b"value"), Message("topic", 2, b"with headers")]
    measured.add_slice_and_sample("0_0", [(object(), messages)], 0.25, now_ms=10)
    overhead = 8 + 8 + 4 + len("topic")
    expected = 1 + 5 + 1 + 12 + 3 + 2 * overhead
    assert measured.sources["0_0", "topic"].bytes == expected


def test_bytes_of_many_records_are_estimated_by_some_of_them() -> None:
    measured = ThreadMeasurements(latencies_at_commit=True, host=Clock())
    many = [Message("t", 1, b"12345") for _ in range(100)]
    measured.add_slice_and_sample("0_0", [(object(), many)], 0.25, now_ms=10)
    assert measured.sources["0_0", "t"].bytes == 100 * (6 + 21)
    assert len(sample_records(many)) <= SAMPLE_RECORDS


def test_the_latency_of_a_source_is_that_of_the_first_and_the_last_record() -> None:
    measured = ThreadMeasurements(latencies_at_commit=True, host=Clock())
    measured.add_slice_and_sample("0_0", [run_of("a", 1_000, 9_999, 1_500)], 0.5, now_ms=2_500)
    read = measured.sources["0_0", "a"].latency.read_figures()
    assert (read.maximum, read.minimum) == (1.0, 0.5)


def test_lateness_is_measured_against_the_newest_record_so_far() -> None:
    measured = ThreadMeasurements(latencies_at_commit=True, host=Clock(), measures_lateness=True)
    measured.add_slice_and_sample("0_0", [run_of("a", 1_000, 3_000, 2_000)], 0.1, now_ms=10)
    measured.add_slice_and_sample("0_0", [run_of("a", 500)], 0.1, now_ms=10)
    read = measured.timings_by_task["0_0"].lateness.read_figures()
    assert read.maximum == 2.5
    assert read.average == pytest.approx((0 + 0 + 1.0 + 2.5) / 4)


def test_records_that_waited_for_no_partition_are_counted_over_a_rollback() -> None:
    measured = ThreadMeasurements(latencies_at_commit=True, host=Clock())
    for count in (3, 3, 5, 2):  # the last one is of the buffer after a rollback
        measured.add_slice_and_sample("0_0", [run_of("a", 1)], 0.1, now_ms=10, enforced=count)
    assert measured.timings_by_task["0_0"].enforced.sum == 7


def process_extracted(buffer: SinglePartitionQueue | PartitionGroup) -> ThreadMeasurements:
    """Process records of 1970 whose values say 9_000, 8_000 and no time, and return what came."""
    measured = ThreadMeasurements(latencies_at_commit=False, host=Clock(), measures_lateness=True)
    values = (b"9000", b"8000", b"-1")
    buffer.add_records(PARTITION, [Message("in", 1, value) for value in values])
    runs = buffer.pop_next_runs(3, now_ms=0)
    for receive, messages in runs:
        for message in messages:
            receive(message)
    measured.add_slice_and_sample("0_0", runs, 0.5, now_ms=10_000)
    return measured


@pytest.mark.parametrize("partition_count", [1, 2])
def test_times_are_those_that_a_source_extracts(partition_count: int) -> None:
    app = App("a")
    text: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
    app.stream("in", **text, timestamp_extractor=lambda record: int(record.value)).for_each(print)
    (subtopology,) = app.topology().subtopologies
    receive = compile_subtopology(subtopology, BoundTask(app))["in"]
    partitions = [Partition("in", number) for number in range(partition_count)]
    buffer: SinglePartitionQueue | PartitionGroup = SinglePartitionQueue(PARTITION, receive)
    if partition_count > 1:
        receivers = dict.fromkeys(partitions, receive)
        buffer = PartitionGroup(receivers, {}, Consumer(), RecordOrderSettings(NEVER_WAIT))
    measured = process_extracted(buffer)
    latencies = measured.sources["0_0", "in"].latency
    assert latencies.sum == pytest.approx(0.5), "the last one has none"
    assert measured.latency.sum_s == pytest.approx(1.0)
    assert measured.timings_by_task["0_0"].lateness.read_figures().maximum == pytest.approx(1.0)


def test_large_slices_that_follow_each_other_fast_are_looked_at_now_and_then() -> None:
    clock = Clock()
    measured = ThreadMeasurements(latencies_at_commit=True, host=clock, measures_lateness=True)
    large = [run_of("a", *range(1, SAMPLE_RECORDS + 2))]
    assert measured.add_slice_and_sample("0_0", large, 0.001, now_ms=10)
    assert not measured.add_slice_and_sample("0_0", large, 0.001, now_ms=10)
    assert measured.add_slice_and_sample("0_1", large, 0.001, now_ms=10), "another task"
    assert measured.add_slice_and_sample("0_0", [run_of("a", 1)], 0.001, now_ms=10), "few records"
    assert measured.add_slice_and_sample("0_0", [], 0.001, now_ms=10), "timers alone"
    clock.advance_monotonic_clock(0.006)
    assert measured.add_slice_and_sample("0_0", large, 0.001, now_ms=10)
    assert measured.sources["0_0", "a"].records == 3 * len(large[0][1]) + 1


def test_a_thread_observes_its_slices_once_a_second_while_no_commit_is_due(tmp_path: Path) -> None:
    world = World(
        build_counting_topology(), tmp_path, commit_every_ms=60_000, collect_statistics=True
    )
    world.load("x", "x", "x")
    world.turn()
    world.clock.advance_monotonic_clock(1.0)
    world.turn()
    measured = world.loop.measurements
    (task,) = world.loop.tasks.values()
    (meter,) = task.stores.meters.values()
    assert world.loop.counters.commits == 0
    assert measured.timings.process_records.sum == 3
    assert meter.timings["put"].total == 3
