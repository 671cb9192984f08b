"""Test that a streamed topic has each committed record once, over restarts, with no silent loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.brokers import Broker
from tests.processes import HANG_LIMIT_S
from tests.spark.topics import Written, mixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Copy:
    """Represents a query from a topic into Parquet files, with a checkpoint."""

    def __init__(self, spark: SparkSession, broker: Broker, topic: str, directory: Path) -> None:
        self._spark = spark
        self._servers = broker.bootstrap_servers
        self.topic = topic
        self._out = str(directory / "out")
        self._checkpoint = str(directory / "checkpoint")

    def run(self, **options: Any) -> list[int]:
        """Process all that is there now; return how many rows each epoch had."""
        query = (
            self._spark.readStream.format("millrace")
            .options(bootstrap_servers=self._servers, topic=self.topic, **options)
            .load()
            .writeStream.format("parquet")
            .option("path", self._out)
            .option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(HANG_LIMIT_S)
            return [each["numInputRows"] for each in query.recentProgress]
        finally:
            query.stop()

    def rows(self) -> list[tuple[int, int, bytes | None]]:
        found = self._spark.read.parquet(self._out).collect()
        return sorted(
            (r.partition, r.offset, None if r.value is None else bytes(r.value)) for r in found
        )


def _bytes(found: bytearray | None) -> bytes | None:
    return None if found is None else bytes(found)


def committed(written: Written) -> list[tuple[int, int, bytes | None]]:
    return sorted((each.partition, each.offset, each.value) for each in written.committed)


def test_what_is_there_is_read_once_over_restarts(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    written = mixed(broker.bootstrap_servers, unique("stream"), partitions=2, records=60)
    copy = Copy(spark, broker, written.topic, tmp_path)
    copy.run()
    assert copy.rows() == committed(written)
    written.transaction([(0, b"k", b"later"), (1, b"k", b"later")])
    written.transaction([(0, b"k", b"aborted")], commit=False)
    written.transaction([(1, b"k", b"open")], end=False)
    copy.run()
    before = [each for each in committed(written) if each[2] != b"open"]
    assert copy.rows() == before
    written.end(commit=True)
    copy.run()
    assert copy.rows() == committed(written)
    assert len(copy.rows()) == 123
