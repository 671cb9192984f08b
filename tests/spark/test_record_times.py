"""Test that records are copied with the times that they had, or refused with their offset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streams.common.topic_partitions import Partition
from streams.spark.cuts.cut import Cut
from streams.spark.exporting.export import ExportRequest, export_application, exported
from streams.spark.serdes.times import SPARK_MS_MAX
from streams.spark.source.broker_access import BrokerAccess
from tests.brokers import Broker
from tests.spark.reading import load
from tests.spark.topics import Written
from tests.spark.written import batches_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Unique = Callable[[str], str]

YEAR_10_000 = 253_402_300_800_000
TIMES = [-1, 1, 1_700_000_000_001, YEAR_10_000 - 1, YEAR_10_000, SPARK_MS_MAX]
BEYOND = [SPARK_MS_MAX + 1, 2**63 - 1]
ANY_TIME = {
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
}


def with_times(broker: Broker, topic: str, times: list[int]) -> str:
    written = Written(broker.bootstrap_servers, topic, configs=ANY_TIME)
    for at in times:
        written.transaction([(0, b"k", b"v")], timestamp=at)
    return topic


def times_of(broker: Broker, topic: str) -> list[int]:
    return [at for raw in batches_of(broker.bootstrap_servers, topic) for at in raw.timestamps_ms]


def copy(frame: DataFrame, broker: Broker, unique: Unique) -> list[int]:
    """Write a frame into a new topic, and return the times of the records there."""
    topic = unique("copy")
    Written(broker.bootstrap_servers, topic, configs=ANY_TIME)
    options = {"bootstrap_servers": broker.bootstrap_servers, "topic": topic}
    frame.write.format("millrace").mode("append").options(**options).save()
    return times_of(broker, topic)


def test_a_record_is_copied_with_its_time(
    spark: SparkSession, broker: Broker, unique: Unique
) -> None:
    topic = with_times(broker, unique("times"), TIMES)
    frame = load(spark, broker, topic)
    assert [row[0] for row in frame.selectExpr("unix_millis(timestamp)").collect()] == TIMES
    assert copy(frame, broker, unique) == TIMES


@pytest.mark.parametrize("beyond", BEYOND)
def test_a_time_that_spark_has_not_is_refused_with_its_offset_or_kept_as_a_number(
    spark: SparkSession, broker: Broker, unique: Unique, beyond: int
) -> None:
    topic = with_times(broker, unique("beyond"), [5, beyond])
    told = rf"timestamp of {topic}\[0\] offset 2 is {beyond} ms since 1970.*option times=ms"
    with pytest.raises(Exception, match=told):
        load(spark, broker, topic).select("key").collect()
    frame = load(spark, broker, topic, times="ms")
    assert [row.timestamp for row in frame.collect()] == [5, beyond]
    assert copy(frame, broker, unique) == [5, beyond]


def test_an_export_has_the_times_or_is_refused(
    spark: SparkSession, broker: Broker, unique: Unique, tmp_path: Path
) -> None:
    for times in (TIMES, [5, 2**63 - 1]):
        topic = with_times(broker, unique("exported"), times)
        cut = Cut(
            application_id=topic, taken_ms=1, offsets={}, ends={Partition(topic, 0): 2 * len(times)}
        )
        access, wanted = BrokerAccess(broker.bootstrap_servers), ExportRequest(outputs=[topic])
        directory = tmp_path / topic
        if times == TIMES:
            export_application(spark, cut, access, directory, wanted)
            rows = exported(spark, directory).orderBy("offset").selectExpr("unix_millis(timestamp)")
            assert [row[0] for row in rows.collect()] == times
        else:
            with pytest.raises(
                Exception, match=rf"timestamp of {topic}\[0\] offset 2 is {2**63 - 1}"
            ):
                export_application(spark, cut, access, directory, wanted)
