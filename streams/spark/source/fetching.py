"""Fetch the records of one range of offsets as batches of plain lists, one for each column."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import compress

from streams.runtime.clients import Header, RangeReader
from streams.spark.source.access import Access
from streams.spark.source.options import Isolation
from streams.spark.source.ranges import OffsetRange
from streams.topic_partitions import Partition

_RECORDS_MAX = 4_000
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
    timestamps: list[int]
    headers: list[list[Header]] | None

    def __len__(self) -> int:
        return len(self.offsets)

    def only(self, wanted: Sequence[bool]) -> RawBatch:
        """Return a batch of the records for which `mask` is true; this batch itself if all are."""
        if all(wanted):
            return self
        return RawBatch(
            self.topic,
            self.partition,
            list(compress(self.keys, wanted)),
            list(compress(self.values, wanted)),
            list(compress(self.offsets, wanted)),
            list(compress(self.timestamps, wanted)),
            None if self.headers is None else list(compress(self.headers, wanted)),
        )


def fetch(
    access: Access, isolation: Isolation, of: OffsetRange, *, headers: bool = False
) -> Generator[RawBatch, None, None]:
    """Yield every record of a range of offsets once, in batches.

    Raises StreamsError where they can't all be read.
    """
    with closing(access.reader(isolation)) as reader:
        yield from _batches(reader, of, headers)


def _batches(reader: RangeReader, of: OffsetRange, headers: bool) -> Iterator[RawBatch]:
    """Yield the batches of a range from a reader that is open."""
    where = Partition(of.topic, of.partition)
    for lists in reader.read_range(
        where, of.first, of.until, _RECORDS_MAX, include_headers=headers
    ):
        yield RawBatch(of.topic, of.partition, *lists)
