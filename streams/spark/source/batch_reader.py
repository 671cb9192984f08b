"""A batch read: the driver plans splits, and each task reads one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from streams.spark.serdes.columns import columns_of, planned
from streams.spark.source import coverage
from streams.spark.source.fetching import fetch
from streams.spark.source.filters import Pruning, are_pushed
from streams.spark.source.limits import ranges_of, timed
from streams.spark.source.options import Content, ReadOptions
from streams.spark.source.ranges import split

if TYPE_CHECKING:
    from pyarrow import RecordBatch


def schema_of(options: ReadOptions) -> StructType:
    """The columns of a read of a topic."""
    if options.content is Content.COVERAGE:
        return coverage.SCHEMA
    topic = options.topic or ""
    return columns_of(planned(options.serdes, topic), topic).schema


def reader_of(options: ReadOptions) -> DataSourceReader:
    """Reads a topic; takes filters where Spark has them pushed down."""
    return FilteringReader(options) if are_pushed() else BatchReader(options)


class BatchReader(DataSourceReader):
    """Reads `options.topic`. What `partitions` returns is a split each, which `read` takes."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.topic is not None
        self._topic = options.topic
        self._options = replace(options, serdes=planned(options.serdes, options.topic))
        self._pruning = Pruning()

    def partitions(self) -> list[InputPartition]:
        options = self._options
        admin = options.access.admin()
        ranges = ranges_of(admin, self._topic, options.limits, options.isolation)
        left = self._pruning.ranges(admin, ranges)
        return [InputPartition(each) for each in split(left, options.records_per_split)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        if partition.value is None:  # Spark's own, where there is nothing to read
            return
        options = self._options
        if options.content is Content.COVERAGE:
            yield coverage.coverage(options.access, options.isolation, partition.value)
            return
        columns = columns_of(options.serdes, self._topic)
        headers = options.serdes.headers
        for raw in fetch(options.access, options.isolation, partition.value, headers=headers):
            yield columns.decode(timed(options.limits, raw))


class FilteringReader(BatchReader):
    """The same; it leaves out offsets that no row could come from."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 Spark's name
        for each in filters:
            self._pruning, unsure = self._pruning.with_filter(each)
            if unsure:
                yield each
