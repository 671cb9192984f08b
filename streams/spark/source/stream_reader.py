"""Read a topic as a stream: the driver plans where each epoch ends, and tasks read its splits.

Spark writes an epoch's offsets to the checkpoint before any task runs, and repeats an epoch that
was not finished with the same offsets. Below the last stable offset a topic does not change, so it
reads the same records: with a sink that knows its epochs, each is there once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from streams.common.topic_partitions import Partition
from streams.errors import StreamsError
from streams.runtime.clients import Admin
from streams.spark.serdes.columns import BatchDecoder, pin_registry_schemas
from streams.spark.source.broker_access import translate_unanswered_requests
from streams.spark.source.fetching import fetch_batches
from streams.spark.source.options import StreamReadOptions, TopicReadLimits
from streams.spark.source.range_planning import fetch_readable_ends, plan_offset_ranges
from streams.spark.source.stream_offsets import (
    StreamOffset,
    advance_offset,
    describe_data_loss,
    plan_epoch_splits,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch

LogOffsets = dict[int, tuple[int, int]]
"""The first offset of each partition, and the end to which it may be read."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads `options.topic` as a stream of epochs, each between two `StreamOffset`s as JSON."""

    def __init__(self, options: StreamReadOptions) -> None:
        self._options = replace(options, serdes=pin_registry_schemas(options.serdes, options.topic))
        self._cached_admin: Admin | None = None
        self._available_now_offsets: LogOffsets | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset at which a new query begins to read."""
        options = self._options
        begin = TopicReadLimits(offsets_from=options.offsets_from)
        ranges = plan_offset_ranges(
            self._get_or_create_admin(), options.topic, begin, options.isolation
        )
        return StreamOffset(
            topic=options.topic,
            topic_id=self._fetch_topic_id(),
            offsets={each.partition: each.first for each in ranges},
            records_per_split=options.records_per_split,
        ).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of an epoch: `max_records_per_trigger`, or no limit."""
        records_max = self._options.max_records_per_trigger
        return ReadAllAvailable() if records_max is None else ReadMaxRows(records_max)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the offset at which the next epoch ends; `start` if there is nothing to read.

        Raises StreamsError if records behind `start` are lost.
        """
        at = StreamOffset.from_json(start)
        log = self._fetch_checked_offsets(at)
        if self._available_now_offsets is not None:
            log = {
                number: (log[number][0], min(log[number][1], end))
                for number, (_, end) in self._available_now_offsets.items()
            }
        records_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = advance_offset(at, log, records_max, self._options.records_per_split)
        return start if end is at else end.to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Make the query end at the offsets that the topic ends at now."""
        self._available_now_offsets = self._fetch_log_offsets()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the end of each partition, for Spark's report of the query's progress."""
        return {str(number): end for number, (_, end) in sorted(self._fetch_log_offsets().items())}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the splits of the epoch between two offsets.

        Raises StreamsError if records behind `start` are lost.
        """
        first = StreamOffset.from_json(start)
        self._fetch_checked_offsets(first)  # The epoch may be a repetition of one that is days old.
        return [
            InputPartition(each) for each in plan_epoch_splits(first, StreamOffset.from_json(end))
        ]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Yield the record batches of one split."""
        options = self._options
        decoder = BatchDecoder(options.serdes, options.topic)
        headers = options.serdes.headers
        for raw in fetch_batches(
            options.access, options.isolation, partition.value, with_headers=headers
        ):
            yield decoder.decode_batch(raw)

    def stop(self) -> None:
        self._cached_admin = None

    def _fetch_checked_offsets(self, start: StreamOffset) -> LogOffsets:
        """Fetch the topic's offsets. Raises StreamsError if unread records were lost.

        Records are lost if any behind `start` can't be read any more, or the topic is another one.
        """
        if start.topic != self._options.topic:
            raise StreamsError(
                f"the checkpoint is of a query that reads {start.topic}, and option topic is "
                f"{self._options.topic}: a query that reads another topic has its own checkpoint"
            )
        topic_id, log = self._fetch_topic_id(), self._fetch_log_offsets()
        if problem := describe_data_loss(start, topic_id, log):
            raise StreamsError(
                f"{problem}. Nothing is skipped in silence: begin a new query, with a checkpoint "
                "of its own and offsets_from"
            )
        return log

    def _fetch_log_offsets(self) -> LogOffsets:
        """Fetch each partition's first offset, and the end up to which it may be read."""
        admin, topic = self._get_or_create_admin(), self._options.topic
        with translate_unanswered_requests(f"the offsets of {topic} can't be asked for"):
            count = admin.fetch_partition_counts().get(topic)
            if count is None:
                raise StreamsError(f"there is no topic {topic!r} any more")
            each = [Partition(topic, number) for number in range(count)]
            firsts = admin.fetch_earliest_offsets(each)
            ends = fetch_readable_ends(admin, each, self._options.isolation)
        return {p.number: (firsts[p], ends[p]) for p in each}

    def _fetch_topic_id(self) -> str:
        """Fetch the topic's id, which tells a topic from a later one of the same name."""
        topic = self._options.topic
        with translate_unanswered_requests(f"the id of {topic} can't be asked for"):
            return self._get_or_create_admin().fetch_topic_ids([topic])[topic]

    def _get_or_create_admin(self) -> Admin:
        """Return the driver's admin client, and create it on first use.

        Before that the reader is sent to the tasks, and a client can't be.
        """
        if self._cached_admin is None:
            self._cached_admin = self._options.access.create_admin()
        return self._cached_admin
