"""Read a store as of a cut: the driver finds cut and changelog, each task reads a partition.

Without a cut one is taken when the read is planned.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from streams.errors import ConfigError, UserError
from streams.spark.cuts.cut import Cut, StoreCut
from streams.spark.serdes.columns import Columns, Shape, columns_of, planned
from streams.spark.source.access import Access
from streams.spark.source.fetching import fetch
from streams.spark.source.options import Content, ReadOptions, Versioned
from streams.spark.source.ranges import OffsetRange, split
from streams.spark.stores.compaction import Compaction, Reading, check
from streams.spark.stores.raw_fetch import can_fetch_raw, scanned, unbroken_from
from streams.spark.stores.tables import Rows, Table, Versions
from streams.topic_partitions import Partition

if TYPE_CHECKING:
    from pyarrow import RecordBatch


def schema_of_store(options: ReadOptions) -> StructType:
    """Return the Spark schema of a read of a store."""
    topic = _changelog_by_name(options)
    return _columns(replace(options, serdes=planned(options.serdes, topic)), topic).schema


@dataclass(frozen=True, slots=True)
class StorePart:
    """Represents the changelog range that one task reads, for its records or the store's rows."""

    below: OffsetRange
    compaction: Compaction
    cut_taken_ms: int


class StoreReader(DataSourceReader):
    """Reads `options.store` as of a cut. Raises ConfigError for a store that isn't there."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.store is not None
        self._store = options.store
        self._topic = _changelog_by_name(options)
        self._options = replace(options, serdes=planned(options.serdes, self._topic))

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks: one for each changelog partition, or more to read its records."""
        options = self._options
        cut = cut_of(options)
        store = store_of(cut, self._store)
        ranges = _ranges(options, cut, store)
        admin = options.access.admin()
        compaction = Compaction.by(admin.fetch_topic_settings([store.changelog])[store.changelog])
        if options.content is Content.CHANGELOG:
            ranges = list(split(ranges, options.records_per_split))
        return [InputPartition(StorePart(each, compaction, cut.taken_ms)) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Yield the rows of a task, or the changelog's records, as Arrow batches."""
        if partition.value is None:  # Spark's own partition if none are planned
            return
        options, part = self._options, partition.value
        columns = _columns(options, self._topic)
        if options.content is Content.CHANGELOG:
            headers = options.serdes.headers
            for raw in fetch(options.access, options.isolation, part.below, headers=headers):
                yield columns.decode(raw)
            return
        for batch, valid in self._rows(part):
            yield columns.decode(batch, valid)

    def _rows(self, part: StorePart) -> Iterator[Rows]:
        """Rebuild the rows of a task's changelog range: latest values, or versions."""
        options, below = self._options, part.below
        if options.versioned is Versioned.NO:
            table = Table(below.topic, below.partition, {})
            self._fill(table, part)
            return table.rows(options.serdes, options.retention_ms)
        versions = Versions(below.topic, below.partition, options.retention_ms, {})
        self._fill(versions, part)
        return versions.rows(every=options.versioned is Versioned.EVERY)

    def _fill(self, table: Table | Versions, part: StorePart) -> None:
        """Load all records below the cut. Raises UserError if some that are needed may be gone."""
        options, below = self._options, part.below
        for raw in fetch(options.access, options.isolation, below):
            table.add(raw)
        where = Partition(below.topic, below.partition)
        end = max(options.access.admin().fetch_last_stable_offsets([where])[where], below.until)
        reading = Reading(
            self._store, below, end, table.records, table.last.keys(), part.cut_taken_ms
        )
        above = OffsetRange(below.topic, below.partition, below.until, end)
        with closing(fetch(options.access, options.isolation, above)) as records:
            check(
                reading,
                part.compaction,
                _Batches(options.access, below, above, table.records),
                records,
                time.time_ns() // 1_000_000,
            )


@dataclass(frozen=True, slots=True)
class _Batches:
    """Finds what is gone of a changelog by the batches that its leader has.

    Where these can't be fetched, every offset that is none of the records may be gone.
    """

    access: Access
    below: OffsetRange
    above: OffsetRange
    records: int

    def removed(self) -> int:
        if can_fetch_raw(self.access):
            return scanned(self.access, self.below).removed
        return self.below.until - self.below.first - self.records

    def unbroken_from(self) -> int:
        if can_fetch_raw(self.access):
            return unbroken_from(self.access, self.above)
        return self.above.until + 1


def cut_of(options: ReadOptions) -> Cut:
    """Return the options' cut, or take one. Raises ConfigError if it is another application's."""
    cut, name = options.limits.cut, options.application_id or ""
    if cut is None:
        access = options.access
        # This imports a client of group coordinators, which most of Spark's processes don't need.
        from streams.spark.cuts.taking import read_cut

        return read_cut(name, bootstrap_servers=access.bootstrap_servers, kafka=access.kafka)
    if cut.application_id != name:
        raise ConfigError(
            f"the cut is of application {cut.application_id!r}, and option application_id is "
            f"{name!r}"
        )
    return cut


def store_of(cut: Cut, name: str) -> StoreCut:
    """Return a store of the cut. Raises ConfigError, which lists the stores, if it isn't there."""
    if name not in cut.stores:
        stores = ", ".join(sorted(cut.stores)) or "none"
        raise ConfigError(
            f"application {cut.application_id!r} has no store {name!r} with a changelog; it has "
            f"{stores}. A table that is restored from its own topic is known to a cut that was "
            "taken of the App: read_cut(app). A store without a changelog can't be read"
        )
    return cut.stores[name]


def _changelog_by_name(options: ReadOptions) -> str:
    """Return the changelog of the store that the options name."""
    cut, store = options.limits.cut, options.store or ""
    if cut is not None:
        return store_of(cut, store).changelog
    return f"{options.application_id}-{store}-changelog"


def _columns(options: ReadOptions, topic: str) -> Columns:
    """Build the columns of a read: records or rows, with validity for all versions."""
    is_table = options.content is not Content.CHANGELOG
    shape = Shape.VERSIONS if is_table and options.versioned is Versioned.EVERY else Shape.TABLE
    return columns_of(options.serdes, topic, shape)


def _ranges(options: ReadOptions, cut: Cut, store: StoreCut) -> list[OffsetRange]:
    """List the ranges from the changelog's start up to the cut, one for each partition.

    Raises: ConfigError for a partition that isn't there; UserError if the cut is outside of what
    the changelog has.
    """
    numbers = options.limits.partitions
    if numbers is not None and (unknown_numbers := set(numbers) - store.positions.keys()):
        raise ConfigError(
            f"option partitions names {min(unknown_numbers)}: {store.changelog} has "
            f"{len(store.positions)}, from 0 on"
        )
    positions = {
        Partition(store.changelog, number): position
        for number, position in sorted(store.positions.items())
        if numbers is None or number in numbers
    }
    admin = options.access.admin()
    starts = admin.fetch_earliest_offsets([*positions])
    ends = admin.fetch_last_stable_offsets([*positions])
    ranges = []
    for partition, position in positions.items():
        start, end = starts[partition], ends[partition]
        if position < start and position > 0:
            raise UserError(
                f"store {options.store!r} can't be read as of the cut: it is older than the "
                f"changelog's start. {partition} begins at offset {start}, and the cut is at "
                f"{position}: take a newer one, or read what was exported"
            )
        if position > end:
            raise UserError(
                f"store {options.store!r} can't be read as of the cut: {partition} ends at offset "
                f"{end}, and the cut is at {position}. The changelog was deleted and made again "
                "since, or these are other brokers"
            )
        ranges.append(OffsetRange(*partition, min(start, position), position))
    return ranges
