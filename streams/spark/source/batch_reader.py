"""Read a topic as one batch: the driver plans splits of offsets, and each task reads one split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from streams.common.topic_id_hashes import to_topic_id_or_none
from streams.runtime.clients import Admin
from streams.spark.cuts.topic_ids import refuse_topic_recreated_since_cut
from streams.spark.serdes.columns import BatchDecoder, pin_registry_schemas
from streams.spark.source import offset_counts
from streams.spark.source.broker_access import translate_unanswered_requests
from streams.spark.source.fetching import fetch_batches
from streams.spark.source.filters import FilterBounds, runs_in_pushdown_planner
from streams.spark.source.options import ReadContent, ReadOptions
from streams.spark.source.range_planning import plan_offset_ranges, select_records_by_time
from streams.spark.source.ranges import split_ranges

if TYPE_CHECKING:
    from pyarrow import RecordBatch


def create_topic_reader(options: ReadOptions) -> BatchReader:
    """Create a reader of a topic, which accepts filters where Spark pushes them down."""
    return FilteringReader(options) if runs_in_pushdown_planner() else BatchReader(options)


class BatchReader(DataSourceReader):
    """Reads `options.topic` as one batch; each task reads one split, a range of offsets."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.topic is not None
        self._topic = options.topic
        self._options = replace(options, serdes=pin_registry_schemas(options.serdes, options.topic))
        self._pruning = FilterBounds()

    @property
    def schema(self) -> StructType:
        """Return the columns of the read."""
        if self._options.content is ReadContent.COVERAGE:
            return offset_counts.SCHEMA
        return BatchDecoder(self._options.serdes, self._topic).schema

    def partitions(self) -> list[InputPartition]:
        """Plan the read at the topic's present offsets, and return a split for each task."""
        options = self._options
        admin = options.access.create_admin()
        ranges = plan_offset_ranges(admin, self._topic, options.limits, options.isolation)
        topic_id = self._fetch_topic_id(admin)
        left = (
            replace(each, topic_id=topic_id) for each in self._pruning.prune_ranges(admin, ranges)
        )
        return [InputPartition(each) for each in split_ranges(left, options.records_per_split)]

    def _fetch_topic_id(self, admin: Admin) -> str | None:
        """Fetch the topic's id, which the tasks compare; None where brokers have no topic ids.

        Raises ConfigError if the topic was created again since the cut of the options was taken.
        """
        with translate_unanswered_requests(f"the id of {self._topic} can't be asked for"):
            topic_id = admin.fetch_topic_ids([self._topic])[self._topic]
        if self._options.limits.cut is not None:
            refuse_topic_recreated_since_cut(self._options.limits.cut, self._topic, topic_id)
        return to_topic_id_or_none(topic_id)

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Yield the record batches of one split; with `content=coverage`, its counts of offsets."""
        if partition.value is None:  # Spark's own, where there is nothing to read
            return
        options = self._options
        if options.content is ReadContent.COVERAGE:
            yield offset_counts.count_offsets_as_batch(
                options.access, options.isolation, partition.value
            )
            return
        decoder = BatchDecoder(options.serdes, self._topic)
        headers = options.serdes.headers
        for raw in fetch_batches(
            options.access, options.isolation, partition.value, with_headers=headers
        ):
            yield decoder.decode_batch(select_records_by_time(options.limits, raw))


class FilteringReader(BatchReader):
    """Reads a topic as BatchReader does, but skips offsets where pushed filters match no row."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 Spark's name
        """Accept filters on partition, offset and timestamp; yield those that Spark must apply."""
        for each in filters:
            self._pruning, unsure = self._pruning.narrow_by_filter(each)
            if unsure:
                yield each
