"""Fetch the records of one range of offsets as batches of plain lists, one for each column."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import compress

from streams.common.topic_partitions import Partition
from streams.runtime.clients import Header
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.options import IsolationLevel
from streams.spark.source.ranges import OffsetRange

_BATCH_RECORDS_MAX = 4_000
"""The most records of a batch: these fit the processor's cache, at a third less for each record."""


@dataclass(frozen=True, slots=True)
class RawBatch:
    """Represents records of one partition in order of their offsets, with a list for each column.

    Timestamps are in ms since 1970; `headers` is None unless they were asked for.
    """

    topic: str
    partition: int
    keys: list[bytes | None]
    values: list[bytes | None]
    offsets: list[int]
    timestamps_ms: list[int]
    headers: list[list[Header]] | None

    def __len__(self) -> int:
        return len(self.offsets)

    def select_records(self, mask: Sequence[bool]) -> RawBatch:
        """Return a batch of the records for which `mask` is true; this batch itself if all are."""
        if all(mask):
            return self
        return RawBatch(
            self.topic,
            self.partition,
            list(compress(self.keys, mask)),
            list(compress(self.values, mask)),
            list(compress(self.offsets, mask)),
            list(compress(self.timestamps_ms, mask)),
            None if self.headers is None else list(compress(self.headers, mask)),
        )


def fetch_batches(
    access: BrokerAccess,
    isolation: IsolationLevel,
    offset_range: OffsetRange,
    *,
    with_headers: bool = False,
) -> Generator[RawBatch, None, None]:
    """Yield every record of a range of offsets once, in batches.

    Raises StreamsError where they can't all be read, or the topic was made again.
    """
    where = Partition(offset_range.topic, offset_range.partition)
    first, until = offset_range.first, offset_range.until
    with closing(access.create_range_reader(isolation)) as reader:
        for lists in reader.read_range(
            where,
            first,
            until,
            _BATCH_RECORDS_MAX,
            include_headers=with_headers,
            topic_id=offset_range.topic_id,
        ):
            yield RawBatch(where.topic, where.number, *lists)
