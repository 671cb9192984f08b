"""Test that what is written is there once: tasks fail, are repeated, or continue after a pause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from streams.errors import StreamsError
from streams.spark.sink.epochs import EpochSink, open_epoch_attempt
from streams.spark.sink.writing import (
    BatchWriter,
    PartitionWritten,
    check_no_extra_partitions,
    encode_rows,
    write_epoch_once,
)
from streams.spark.source.options import WriteOptions, parse_write_options
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.spark.written import batch, batches_of, made, values_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(5, by="test")

Unique = Callable[[str], str]


class Target:
    """Represents a topic, and a sink that writes to it."""

    def __init__(self, broker: Broker, unique: Unique, **more: str) -> None:
        self.servers = broker.bootstrap_servers
        self.topic = made(self.servers, unique("sink"), partitions=2)
        self.sink = EpochSink(unique("millrace-sink"), self.topic)
        self.options = self.with_options(**more)

    def with_options(self, **more: str) -> WriteOptions:
        given = {"bootstrap_servers": self.servers, "topic": self.topic, "value": "string"}
        return parse_write_options(given | more, is_stream=True)

    def write(
        self, epoch: int, *batches: RecordBatch, partition: int = 0, **more: str
    ) -> PartitionWritten:
        options = self.with_options(**more)
        return write_epoch_once(options, self.sink, partition, epoch, iter(batches))

    def values(self) -> list[str | None]:
        return values_of(self.servers, self.topic)


@pytest.fixture
def target(broker: Broker, unique: Unique) -> Target:
    return Target(broker, unique)


class TaskFailed(Exception):
    """Ends a task in the middle."""


def then_fails(*batches: RecordBatch) -> Iterator[RecordBatch]:
    yield from batches
    raise TaskFailed


def test_a_task_that_is_repeated_after_it_committed_writes_nothing(target: Target) -> None:
    first = target.write(0, batch(["a", "b"]), batch(["c"]))
    again = target.write(0, batch(["c"]), batch(["b", "a"]))  # Spark gives them in another order
    assert (first.rows, first.was_written_before, again.rows, again.was_written_before) == (
        3,
        False,
        3,
        True,
    )
    assert target.values() == ["a", "b", "c"]
    target.write(1, batch(["d"]))
    assert target.values() == ["a", "b", "c", "d"]


def test_a_task_that_is_repeated_after_it_failed_writes_all(target: Target) -> None:
    with pytest.raises(TaskFailed):
        write_epoch_once(target.options, target.sink, 0, 0, then_fails(batch(["a", "b"])))
    assert target.values() == []
    target.write(0, batch(["a", "b"]), batch(["c"]))
    assert target.values() == ["a", "b", "c"]


def test_an_attempt_that_was_given_up_and_goes_on_writes_nothing(target: Target) -> None:
    """Run another attempt of the task meanwhile: it need not wait, and is not doubled."""
    access = target.options.access

    def comes_back() -> None:
        with open_epoch_attempt(access, target.sink, 0, 0) as zombie:
            zombie.produce_rows(encode_rows(target.options, batch(["a"])))
            target.write(0, batch(["a"]), batch(["b"]))
            zombie.produce_rows(encode_rows(target.options, batch(["b"])))
            zombie.commit_epoch()

    with pytest.raises(StreamsError, match="another one of the same task has taken its place"):
        comes_back()
    assert target.values() == ["a", "b"]


def test_partitions_of_spark_are_written_each_for_itself(target: Target) -> None:
    """Write more Spark partitions than the topic has partitions."""
    for partition in range(4):
        target.write(0, batch([f"v{partition}"]), partition=partition)
    for partition in (3, 1):
        assert target.write(0, batch([f"v{partition}"]), partition=partition).was_written_before
    assert target.values() == ["v0", "v1", "v2", "v3"]


@pytest.mark.parametrize("rows", [["a"], ["a", "B"], ["a", "b", "c"], []])
def test_an_epoch_that_comes_again_with_other_rows_is_an_error(
    target: Target, rows: list[str]
) -> None:
    target.write(0, batch(["a", "b"]))
    with pytest.raises(StreamsError, match="which of its rows are there can't be told"):
        target.write(0, batch(rows))
    target.write(0, batch(rows), on_changed_rows="skip")
    assert target.values() == ["a", "b"]


def test_an_epoch_that_comes_again_in_fewer_partitions_is_an_error(target: Target) -> None:
    for partition in range(3):
        target.write(0, batch([f"v{partition}"]), partition=partition)
    check_no_extra_partitions(target.options, target.sink, 3, 0)
    check_no_extra_partitions(target.options, target.sink, 2, 1)
    with pytest.raises(StreamsError, match="what partitions 1, 2 wrote then may be there twice"):
        check_no_extra_partitions(target.options, target.sink, 1, 0)


def test_a_checkpoint_that_is_older_than_the_topic_is_an_error(target: Target) -> None:
    target.write(7, batch(["a"]))
    with pytest.raises(StreamsError, match="epoch 7 was already: the checkpoint is an older one"):
        target.write(5, batch(["b"]))
    assert target.values() == ["a"]


def test_a_topic_that_is_not_there_is_told(target: Target) -> None:
    with pytest.raises(Exception, match="there is no topic 'nowhere' to write into"):
        target.write(0, batch(["a"]), topic="nowhere")


def save(spark: SparkSession, frame: Any, target: Target, **options: Any) -> None:
    given = {"bootstrap_servers": target.servers, "topic": target.topic, "value": "string"}
    frame.write.format("millrace").mode("append").options(**{**given, **options}).save()


def test_a_frame_is_written_with_its_columns(
    spark: SparkSession, broker: Broker, unique: Unique
) -> None:
    target = Target(broker, unique)
    frame = spark.sql(
        "SELECT id AS key, named_struct('n', id, 'word', 'w') AS value, "
        "timestamp_millis(1700000000000 + id) AS timestamp, CAST(id % 2 AS INT) AS partition, "
        "array(named_struct('key', 'h', 'value', CAST('x' AS BINARY))) AS headers "
        "FROM range(0, 100, 1, 3)"
    )
    save(spark, frame, target, key="int64", value="json")
    found = {
        (raw.partition, key, value, at, str(headers))
        for raw in batches_of(target.servers, target.topic)
        for key, value, at, headers in zip(
            raw.keys, raw.values, raw.timestamps_ms, raw.headers or [], strict=True
        )
    }
    assert found == {
        (
            n % 2,
            n.to_bytes(8, "big"),
            b'{"n":%d,"word":"w"}' % n,
            1_700_000_000_000 + n,
            str([("h", b"x")]),
        )
        for n in range(100)
    }


def test_a_write_that_has_a_name_is_repeated_without_effect(
    spark: SparkSession, broker: Broker, unique: Unique
) -> None:
    target, name = Target(broker, unique), unique("write")
    frame = spark.range(0, 50, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    for _ in range(2):
        save(spark, frame, target, write_id=name)
    assert target.values() == sorted(str(n) for n in range(50))
    with pytest.raises(Exception, match="which of its rows are there can't be told"):
        save(spark, frame.filter("value <> '7'"), target, write_id=name)
    save(spark, frame, target)
    assert len(target.values()) == 100


def test_a_task_that_was_given_up_and_begins_when_the_write_is_done_writes_nothing(
    broker: Broker, unique: Unique, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(broker, unique)
    writer = BatchWriter(target.options)  # as Spark sends it to tasks; the write has no name
    monkeypatch.setattr("streams.spark.sink.writing.get_spark_partition_number", lambda: 0)
    done = writer.write(iter([batch(["a"])]))
    writer.commit([done])
    again = writer.write(iter([batch(["a"])]))
    assert isinstance(again, PartitionWritten)
    assert again.was_written_before
    assert target.values() == ["a"]


@pytest.mark.parametrize(
    ("configs", "row", "told"),
    [
        (
            {"max.message.bytes": "1000"},
            {"value": "x" * 10_000},
            "MSG_SIZE_TOO_LARGE.*value b'xxx.* of 10000 bytes; give the topic a larger",
        ),
        (
            {},
            {"value": "x" * 2_000_000},
            r"MSG_SIZE_TOO_LARGE.*of 2000000 bytes; .*kafka\.message\.max\.bytes",
        ),
        ({"cleanup.policy": "compact"}, {"value": "v"}, "INVALID_RECORD.*Its key is null.*compact"),
        (
            {},
            {"value": "v", "timestamp": 1_700_000_000_000_000},
            r"largest time is 1700000000000000 ms; .*message\.timestamp\.after",
        ),
    ],
)
def test_a_row_that_brokers_refuse_is_named(
    broker: Broker,
    unique: Unique,
    configs: dict[str, str],
    row: dict[str, Any],
    told: str,
) -> None:
    topic = unique("refusing")
    with Client(broker.bootstrap_servers) as client:
        create_topic(client, topic, partitions=1, configs=configs)
    given = {"bootstrap_servers": broker.bootstrap_servers, "topic": topic, "value": "string"}
    options = parse_write_options(given, is_stream=True)
    sink = EpochSink(unique("millrace-sink"), topic)
    rows = pa.RecordBatch.from_pylist([row])
    with pytest.raises(
        StreamsError, match=rf"(?s)into topic .* is not written: brokers refuse .*{told}"
    ):
        write_epoch_once(options, sink, 0, 0, iter([batch(["fine"]), rows]))
    assert values_of(broker.bootstrap_servers, topic) == []
