"""Test that a topic as a DataFrame has each committed record once, whatever lies between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.brokers import Broker
from tests.spark.reading import load, rows
from tests.spark.topics import mixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_topic_is_its_committed_records(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    written = mixed(broker.bootstrap_servers, unique("read"), partitions=2, records=200)
    frame = load(spark, broker, written.topic)
    found = rows(frame)
    assert len(found) == 400
    assert set(found) == written.rows()
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp"]


def test_small_splits_together_are_the_topic(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    """Read splits that begin and end at markers, in aborted transactions, or hold no record."""
    written = mixed(broker.bootstrap_servers, unique("splits"), partitions=1, records=20)
    frame = load(spark, broker, written.topic, records_per_split=3)
    found = rows(frame)
    assert frame.rdd.getNumPartitions() > 10
    assert len(found) == 20
    assert set(found) == written.rows()


def test_an_open_transaction_is_not_read_and_not_waited_for(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    written = mixed(broker.bootstrap_servers, unique("open"), partitions=1, records=10)
    before = written.rows()
    written.transaction([(0, b"k", b"open")], end=False)
    assert set(rows(load(spark, broker, written.topic))) == before
    written.end(commit=True)
    assert set(rows(load(spark, broker, written.topic))) == written.rows()
