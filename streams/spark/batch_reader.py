"""A batch read: the driver plans splits, and each task reads one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from streams.spark.columns import columns_of, planned
from streams.spark.fetching import fetch
from streams.spark.limits import ranges_of
from streams.spark.options import ReadOptions
from streams.spark.ranges import split

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class BatchReader(DataSourceReader):
    """Reads `options.topic`. What `partitions` returns is a split each, which `read` takes."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.topic is not None
        self._topic = options.topic
        self._options = replace(options, serdes=planned(options.serdes, options.topic))

    def partitions(self) -> list[InputPartition]:
        options = self._options
        ranges = ranges_of(options.access.admin(), self._topic, options.limits, options.isolation)
        return [InputPartition(each) for each in split(ranges, options.records_per_split)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        if partition.value is None:  # Spark's own, where there is nothing to read
            return
        options = self._options
        columns = columns_of(options.serdes, self._topic)
        headers = options.serdes.headers
        for raw in fetch(options.access, options.isolation, partition.value, headers=headers):
            yield columns.decode(raw)
