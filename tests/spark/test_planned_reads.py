"""Test that reads which the driver plans are those of the data source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, StreamsError
from streams.spark.cuts.cut import Cut, StoreCut
from streams.spark.reconciliation.planned_reads import read_as_planned_here
from tests.brokers import Broker
from tests.spark.reading import load, rows
from tests.spark.topics import mixed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_a_read_planned_on_the_driver_is_the_data_source_s(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    written = mixed(broker.bootstrap_servers, unique("planned"), partitions=2, records=200)
    expected = load(spark, broker, written.topic, records_per_split=100)
    options = {"bootstrap_servers": broker.bootstrap_servers, "topic": written.topic}
    found = read_as_planned_here(spark, options | {"records_per_split": "100"})
    assert found.schema == expected.schema
    assert set(rows(found)) == set(rows(expected)) == written.rows()
    assert found.rdd.getNumPartitions() == expected.rdd.getNumPartitions() > 2
    # Spark knows of neither how large it is: it must not broadcast it in joins.
    assert "BroadcastHashJoin" not in _explain_join(found)
    nothing = read_as_planned_here(spark, options | {"offsets_to": "earliest"})
    assert nothing.collect() == []


def test_why_nothing_can_be_read_is_said_at_once_and_as_the_data_source_says_it(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    written = mixed(broker.bootstrap_servers, unique("gone"), partitions=1, records=10)
    servers = {"bootstrap_servers": broker.bootstrap_servers}
    with pytest.raises(ConfigError, match="there is no topic 'nowhere'"):
        read_as_planned_here(spark, servers | {"topic": "nowhere"})
    cut = Cut(
        application_id="an-app",
        taken_ms=0,
        offsets={Partition("in", 0): 1},
        stores={"s": StoreCut(written.topic, {0: 1_000_000})},
    )
    store = {"application_id": "an-app", "store": "s", "cut": cut.to_json()}
    with pytest.raises(StreamsError, match=r"the cut is at 1000000.*made again"):
        read_as_planned_here(spark, servers | store)


def _explain_join(frame: DataFrame) -> str:
    """Return Spark's plan of a join of a DataFrame with itself."""
    joined = frame.alias("a").join(frame.alias("b"), "key")
    return str(joined._jdf.queryExecution().executedPlan().toString())
