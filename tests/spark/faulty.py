"""Run a query between two topics whose tasks fail as planned: `python -m tests.spark.faulty`.

Arguments: servers, source, target, checkpoint, faults. `faults` is a directory, which keeps what
has happened: each fault happens once, over restarts too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from streams.spark import MillraceDataSource
from streams.spark.sink.writing import BATCH_ID_KEY, StreamWriter
from streams.spark.source.options import WriteOptions, parse_write_options

if TYPE_CHECKING:
    from pyarrow import RecordBatch

RECORDS_PER_SPLIT = 40
RECORDS_PER_TRIGGER = 160
HALF, AFTER, HANG = "fails with half of its rows written", "fails after its commit", "hangs"
FAULTS: Mapping[tuple[int, int], str] = {(1, 1): HALF, (2, 2): AFTER, (3, 1): HANG}
"""By epoch and Spark partition: what happens to the first attempt."""


def happened(faults: Path, epoch: int, partition: int) -> Path:
    return faults / f"{epoch}-{partition}"


class FaultySource(MillraceDataSource):
    """Represents the data source with planned faults."""

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        options = dict(self.options)
        faults = Path(options.pop("faults"))
        return FaultyWriter(parse_write_options(options, is_stream=True), faults)


class FaultyWriter(StreamWriter):
    def __init__(self, options: WriteOptions, faults: Path) -> None:
        super().__init__(options)
        self._faults = faults

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        at = int(context.getLocalProperty(BATCH_ID_KEY) or 0), context.partitionId()
        mark, fault = happened(self._faults, *at), FAULTS.get(at)
        if fault is None or mark.exists():
            return super().write(iterator)
        if fault == AFTER:
            super().write(iterator)
            mark.touch()
            raise RuntimeError(fault)
        return super().write(_interrupted(iterator, mark, fault))


def _interrupted(batches: Iterator[RecordBatch], mark: Path, fault: str) -> Iterator[RecordBatch]:
    for batch in batches:
        yield batch.slice(0, batch.num_rows // 2)
        mark.touch()
        while fault == HANG:
            time.sleep(1)
        raise RuntimeError(fault)


def main(servers: str, source: str, target: str, checkpoint: str, faults: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    spark.dataSource.register(FaultySource)
    given = {"bootstrap_servers": servers, "value": "string"}
    query = (
        spark.readStream.format("millrace")
        .options(**given, topic=source, records_per_split=RECORDS_PER_SPLIT)
        .options(max_records_per_trigger=RECORDS_PER_TRIGGER)
        .load()
        .select("value")
        .writeStream.format("millrace")
        .options(**given, topic=target, checkpointLocation=checkpoint, faults=faults)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    # By its name, for executors unpickle what it holds by reference.
    from tests.spark import faulty

    faulty.main(*sys.argv[1:])
