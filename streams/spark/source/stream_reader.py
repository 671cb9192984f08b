"""Read a topic as a stream: the driver says how far each epoch goes, and tasks read its splits.

Spark writes an epoch's offsets to the checkpoint before any task runs, and repeats an epoch that
was not finished with the same offsets. Below the last stable offset a topic does not change, so it
reads the same records: with a sink that knows its epochs, each is there once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from streams.errors import OutcomeUnknown, StreamsError
from streams.runtime.clients import Admin
from streams.spark.serdes.columns import columns_of, planned
from streams.spark.source.access import Access
from streams.spark.source.fetching import fetch
from streams.spark.source.limits import ranges_of
from streams.spark.source.options import (
    RECORDS_PER_SPLIT,
    STREAM_READ,
    At,
    Given,
    Isolation,
    Limits,
    Serdes,
    offsets,
    serdes,
)
from streams.spark.source.stream_offsets import StreamOffset, advance, lost, splits
from streams.topic_partitions import Partition

if TYPE_CHECKING:
    from pyarrow import RecordBatch

Log = dict[int, tuple[int, int]]
"""The first offset of each partition, and the end to which it may be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReadOptions:
    """Holds the options of a streaming read. `offsets_from`: where a new query begins."""

    access: Access
    topic: str
    serdes: Serdes
    isolation: Isolation
    offsets_from: At | Mapping[int, At]
    max_records_per_trigger: int | None
    records_per_split: int


def stream_read_options(given: Mapping[str, str]) -> StreamReadOptions:
    """Parse the options of a streaming read. Raises ConfigError."""
    options = Given(given, STREAM_READ, "a streaming read")
    return StreamReadOptions(
        access=options.access(),
        topic=options.needed("topic"),
        serdes=serdes(options),
        isolation=options.choice("isolation", Isolation) or Isolation.READ_COMMITTED,
        offsets_from=offsets(options, "offsets_from", "earliest"),
        max_records_per_trigger=options.number("max_records_per_trigger", 1),
        records_per_split=options.number("records_per_split", 1) or RECORDS_PER_SPLIT,
    )


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads `options.topic` as it grows, in epochs between two `StreamOffset`s as JSON."""

    def __init__(self, options: StreamReadOptions) -> None:
        self._options = replace(options, serdes=planned(options.serdes, options.topic))
        self._asking: Admin | None = None
        self._target: Log | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset at which a new query begins."""
        options = self._options
        begin = Limits(offsets_from=options.offsets_from)
        ranges = ranges_of(self._admin(), options.topic, begin, options.isolation)
        return StreamOffset(
            topic=options.topic,
            topic_id=self._topic_id(),
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
        log = self._checked(at)
        if self._target is not None:
            log = {
                number: (log[number][0], min(log[number][1], end))
                for number, (_, end) in self._target.items()
            }
        records_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = advance(at, log, records_max, self._options.records_per_split)
        return start if end is at else end.to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the query at the topic's offsets of this moment."""
        self._target = self._log()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the end of each partition, for Spark's report of the query's progress."""
        return {str(number): end for number, (_, end) in sorted(self._log().items())}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the splits of the epoch between two offsets.

        Raises StreamsError if records behind `start` are lost.
        """
        first = StreamOffset.from_json(start)
        self._checked(first)  # The epoch may be a repetition of one that is days old.
        return [InputPartition(each) for each in splits(first, StreamOffset.from_json(end))]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Yield the record batches of one split."""
        options = self._options
        decoder = columns_of(options.serdes, options.topic)
        headers = options.serdes.headers
        for raw in fetch(options.access, options.isolation, partition.value, headers=headers):
            yield decoder.decode(raw)

    def stop(self) -> None:
        self._asking = None

    def _checked(self, start: StreamOffset) -> Log:
        """Return the topic's offsets as they are, or raise StreamsError if records are lost.

        Records are lost if any behind `start` can't be read any more, or the topic is another one.
        """
        if start.topic != self._options.topic:
            raise StreamsError(
                f"the checkpoint is of a query that reads {start.topic}, and option topic is "
                f"{self._options.topic}: a query that reads another topic has its own checkpoint"
            )
        topic_id, log = self._topic_id(), self._log()
        if problem := lost(start, topic_id, log):
            raise StreamsError(
                f"{problem}. Nothing is skipped in silence: begin a new query, with a checkpoint "
                "of its own and offsets_from"
            )
        return log

    def _log(self) -> Log:
        """Ask for the first offset of each partition, and the end to which it may be read."""
        admin, topic = self._admin(), self._options.topic
        committed = self._options.isolation is Isolation.READ_COMMITTED
        try:
            count = admin.fetch_partition_counts().get(topic)
            if count is None:
                raise StreamsError(f"there is no topic {topic!r} any more")
            each = [Partition(topic, number) for number in range(count)]
            firsts = admin.fetch_earliest_offsets(each)
            ends = (
                admin.fetch_last_stable_offsets(each)
                if committed
                else admin.fetch_latest_offsets(each)
            )
        except OutcomeUnknown as unknown:
            raise StreamsError(f"the offsets of {topic} can't be asked for: {unknown}") from None
        return {p.number: (firsts[p], ends[p]) for p in each}

    def _topic_id(self) -> str:
        """Ask for the id of the topic."""
        topic = self._options.topic
        try:
            return self._admin().fetch_topic_ids([topic])[topic]
        except OutcomeUnknown as unknown:
            raise StreamsError(f"the id of {topic} can't be asked for: {unknown}") from None

    def _admin(self) -> Admin:
        """Return the driver's admin client, which is made on first use.

        Before that the reader is sent to the tasks, and a client can't be.
        """
        if self._asking is None:
            self._asking = self._options.access.admin()
        return self._asking
