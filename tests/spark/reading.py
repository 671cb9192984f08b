"""Read topics as DataFrames, and DataFrames as what tests compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.brokers import Broker
from tests.spark.topics import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load(spark: SparkSession, broker: Broker, topic: str, **options: Any) -> DataFrame:
    given = {"bootstrap_servers": broker.bootstrap_servers, "topic": topic, **options}
    return spark.read.format("millrace").options(**given).load()


def rows(frame: DataFrame) -> list[Record]:
    """Return each row's topic, partition, offset and bytes."""
    return [
        Record(row.partition, row.offset, _bytes(row.key), _bytes(row.value))
        for row in frame.collect()
    ]


def _bytes(found: bytearray | None) -> bytes | None:
    return None if found is None else bytes(found)
