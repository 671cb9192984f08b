"""Test what time records have, and in which order they are taken, with timestamp extractors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Record, StreamsError, TopologyError, TopologyTestDriver, serdes
from streams.common.topic_partitions import Partition
from streams.runtime.tasks.partition_group import PartitionGroup, RecordOrderSettings
from streams.settings.timestamp_extractors import TimestampExtractor, parse_timestamp_extractor
from streams.testing.cluster import Message
from streams.topology.compile import compile_subtopology
from tests.unit.streams.bound import BoundTask
from tests.unit.streams.runtime.tasks.test_partition_group import Consumer

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


def extract_from_value(record: Record) -> int:
    return int(record.value)


def bound(extractor: Any) -> BoundTask:
    app = App("a")
    app.stream("in", **TEXT, timestamp_extractor=extractor).to("out")
    return BoundTask(app)


def times(task: BoundTask) -> list[int]:
    return [timestamp_ms for _, _, _, timestamp_ms, _ in task.produced]


def test_a_function_of_the_record_says_its_time() -> None:
    task = bound(extract_from_value)
    task.pipe("k", "42", timestamp_ms=7)
    assert (times(task), task.stream_time_ms) == ([42], 42)


def test_a_function_may_take_the_highest_time_of_its_partition_too() -> None:
    task = bound(lambda record, partition_time_ms: partition_time_ms + 5)
    for _ in range(3):
        task.pipe("k", "v", timestamp_ms=1_000)
    assert times(task) == [4, 9, 14]


@pytest.mark.parametrize(
    ("extractor", "expected"),
    [
        (lambda record, scale=1_000: int(record.value) * scale, [7_000, 8_000]),
        (lambda record, *, scale=1_000: int(record.value) * scale, [7_000, 8_000]),
        (lambda record, partition_time_ms=-5: partition_time_ms + 2, [1, 3]),
        (lambda record, highest_ms, scale=10: highest_ms + scale, [9, 19]),
        (lambda *given: given[1] + len(given), [1, 3]),
        (lambda record, *rest: len(rest), [1, 1]),
        (lambda record, scale=1_000, *rest: int(record.value) * scale, [7_000, 8_000]),
    ],
)
def test_an_argument_with_a_default_is_the_functions_own(
    extractor: TimestampExtractor, expected: list[int]
) -> None:
    task = bound(extractor)
    for value in ("7", "8"):
        task.pipe("k", value)
    assert times(task) == expected


def test_a_record_whose_time_is_below_0_is_dropped_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    task = bound(extract_from_value)
    with caplog.at_level(logging.WARNING):
        for value in ("5", "-1", "-1", "6"):
            task.pipe("k", value)
    assert times(task) == [5, 6]
    assert task.dropped_count == 2
    (line,) = (each.getMessage() for each in caplog.records)
    assert line == (
        "step 'KSTREAM-SOURCE-0000000000' drops in[0]@7: its time is -1, below 0 "
        "(1 record dropped since the last such line)"
    )


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("log_and_skip_on_invalid_timestamp", [10, 3]),
        ("use_partition_time_on_invalid_timestamp", [10, 10, 3]),
        ("org.apache.kafka.streams.processor.UsePartitionTimeOnInvalidTimestamp", [10, 10, 3]),
    ],
)
def test_policies_for_negative_timestamps_are_those_of_kafka_streams(
    policy: str, expected: list[int]
) -> None:
    task = bound(policy)
    for timestamp_ms in (10, -1, 3):
        task.pipe("k", "v", timestamp_ms=timestamp_ms)
    assert times(task) == expected


def test_the_default_fails_on_a_negative_timestamp() -> None:
    with pytest.raises(StreamsError, match="its timestamp is -1"):
        bound(None).pipe("k", "v", timestamp_ms=-1)


def test_a_partition_without_a_time_yet_has_none_to_use() -> None:
    with pytest.raises(StreamsError, match="its partition has had no time yet"):
        bound("use_partition_time_on_invalid_timestamp").pipe("k", "v", timestamp_ms=-1)


def test_an_extractor_that_raises_is_for_the_deserialization_handler() -> None:
    app = App("a")
    app.stream("in", **TEXT, timestamp_extractor=extract_from_value).to("out")
    with pytest.raises(StreamsError, match="it has no time, ValueError"):
        BoundTask(app).pipe("k", "none")
    task = BoundTask(app, deserialization="skip")
    task.pipe("k", "none")
    task.pipe("k", "9")
    assert times(task) == [9]


def test_a_time_that_no_record_can_have_is_for_the_deserialization_handler() -> None:
    app = App("a")
    app.stream("in", **TEXT, timestamp_extractor=extract_from_value).to("out")
    with pytest.raises(StreamsError, match=f"its extracted time {2**63} is above"):
        BoundTask(app).pipe("k", str(2**63))
    task = BoundTask(app, deserialization="skip")
    for value in (str(2**63), "9", str(2**63 - 1)):
        task.pipe("k", value)
    assert times(task) == [9, 2**63 - 1]


def test_the_wall_clock_is_the_time_with_wallclock() -> None:
    app = App("a", default_timestamp_extractor="wallclock")
    app.stream("in", **TEXT).to("out")
    with TopologyTestDriver(app) as driver:
        driver.advance_wall_clock(ms=1_234)
        driver.topic("in").pipe("k", "v", timestamp_ms=5)
        assert driver.topic("out").read().timestamp_ms == 1_234


def test_a_source_has_its_own_extractor_before_the_default_and_repartition_topics_have_none() -> (
    None
):
    app = App("a", default_timestamp_extractor=lambda record: record.timestamp_ms + 1_000)
    app.stream("default", **TEXT).select_key(
        lambda k, v: v, key=serdes.string
    ).group_by_key().count(store="counts").to_stream().to("counts")
    app.stream("own", **TEXT, timestamp_extractor=extract_from_value).to("copy")
    app.table("rows", **TEXT, timestamp_extractor=extract_from_value).to_stream().to("updates")
    with TopologyTestDriver(app) as driver:
        driver.topic("default").pipe("k", "v", timestamp_ms=1)
        driver.topic("own").pipe("k", "77", timestamp_ms=1)
        driver.topic("rows").pipe("k", "78", timestamp_ms=1)
        assert [
            driver.topic(topic).read().timestamp_ms for topic in ("counts", "copy", "updates")
        ] == [1_001, 77, 78]


def test_a_table_whose_rows_have_other_times_keeps_its_changelog() -> None:
    app = App("a", topology_optimization="all")
    app.table("own", **TEXT, store="own", timestamp_extractor=extract_from_value)
    app.table("plain", **TEXT, store="plain")
    app.table(
        "some",
        **TEXT,
        store="some",
        timestamp_extractor="log_and_skip_on_invalid_timestamp",
    )
    topology = app.topology()
    assert topology.restore_topic_of("own") == "a-own-changelog"
    assert topology.restore_topic_of("plain") == "plain"
    assert topology.restore_topic_of("some") == "a-some-changelog"


class Group:
    """Holds a partition group of two topics, one of them with an extractor, and what it takes."""

    def __init__(self, extractor: TimestampExtractor, idle_ms: int = 0) -> None:
        app = App("a")
        left = app.stream("left", **TEXT, timestamp_extractor=extractor)
        left.merge(app.stream("right", **TEXT)).to("out")
        self.task = BoundTask(app)
        self.left, self.right = Partition("left", 0), Partition("right", 0)
        (subtopology,) = app.topology().subtopologies
        receivers = compile_subtopology(subtopology, self.task)
        self.consumer = Consumer()
        self.group = PartitionGroup(
            {p: receivers[p.topic] for p in (self.left, self.right)},
            {},
            self.consumer,
            RecordOrderSettings(idle_ms),
        )
        self._offset = 0

    def add(self, partition: Partition, *values: str, timestamp_ms: int = 0) -> None:
        messages = []
        for value in values:
            messages.append(
                Message(partition, self._offset, b"k", value.encode(), timestamp_ms, ())
            )
            self._offset += 1
        self.group.add_records(partition, messages)

    def process(self) -> list[str]:
        before = len(self.task.produced)
        for receive, messages in self.group.pop_next_runs(1_000, 0):
            for message in messages:
                self.task.message = message
                receive(message)
        return [value.decode() for _, _, value, _, _ in self.task.produced[before:]]


def test_records_are_taken_in_the_order_of_extracted_times() -> None:
    made = Group(extract_from_value)
    made.consumer.lags = {made.left: 0, made.right: 0}
    made.add(made.left, "10", "30")
    made.add(made.right, "a", timestamp_ms=20)
    made.add(made.right, "b", timestamp_ms=40)
    assert made.process() == ["10", "a", "30", "b"]
    assert times(made.task) == [10, 20, 30, 40]
    assert made.group.partition_times_ms(made.task.stream_time_ms) == {
        made.left: 30,
        made.right: 40,
    }


def test_a_dropped_record_leaves_its_partition_empty_and_waited_for() -> None:
    made = Group(extract_from_value)
    made.add(made.left, "-5")
    made.add(made.right, "a", timestamp_ms=20)
    made.consumer.lags = {made.left: 3, made.right: 0}
    assert made.process() == []
    assert made.process() == [], "the left partition has records to come, which may be earlier"
    made.add(made.left, "4")
    assert made.process() == ["4"]
    made.consumer.lags = {made.left: 0, made.right: 0}
    assert made.process() == ["a"]
    assert made.task.dropped_count == 1


def test_an_extractor_is_given_the_time_of_its_own_partition() -> None:
    seen: list[int] = []

    def extract(record: Record, partition_time_ms: int) -> int:
        seen.append(partition_time_ms)
        return int(record.value)

    made = Group(extract)
    made.consumer.lags = {made.left: 0, made.right: 0}
    made.add(made.right, "a", timestamp_ms=900)
    made.add(made.left, "5", "3", "8", "9")
    made.process()
    assert seen == [-1, 5, 5, 8]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("record_time", "is not one of 'fail_on_invalid_timestamp'"),
        (7, "7 is not one of"),
        (lambda: 1, r"called with \(record\) or \(record, partition_time_ms\)"),
    ],
)
def test_a_wrong_extractor_is_refused_by_the_step(given: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        App("a").stream("in", **TEXT, timestamp_extractor=given)


async def extract_later(record: Record) -> int:
    return record.timestamp_ms


def extract_many(record: Record) -> Any:
    yield record.timestamp_ms


@pytest.mark.parametrize("given", [extract_later, extract_many])
def test_an_extractor_neither_yields_nor_is_async(given: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="neither yields nor is async"):
        parse_timestamp_extractor(given)


def test_one_topic_has_one_extractor() -> None:
    app = App("a")
    app.stream("in", **TEXT, timestamp_extractor="wallclock")
    with pytest.raises(TopologyError, match="with another timestamp_extractor"):
        app.stream("in", **TEXT)
