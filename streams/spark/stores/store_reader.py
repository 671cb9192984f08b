"""Read a store as of a cut: the driver finds the changelog's ranges, and each task reads one.

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

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError, UserError
from streams.spark.cuts.cut import Cut, StoreCut
from streams.spark.cuts.topic_ids import refuse_topic_recreated_since_cut
from streams.spark.serdes.columns import BatchDecoder, RowKind, pin_registry_schemas
from streams.spark.source.broker_access import BrokerAccess
from streams.spark.source.fetching import fetch_batches
from streams.spark.source.options import ReadContent, ReadOptions, VersionedRead
from streams.spark.source.ranges import OffsetRange, split_ranges
from streams.spark.stores.changelog_tables import LatestRecords, RecordVersions, StoreRows
from streams.spark.stores.compaction import (
    ChangelogRead,
    CompactionPolicy,
    check_rows_survived_compaction,
)
from streams.spark.stores.raw_fetch import find_last_segment_offset, scan_range

if TYPE_CHECKING:
    from pyarrow import RecordBatch


@dataclass(frozen=True, slots=True)
class StoreReadTask:
    """Represents the changelog range that one task reads to rebuild rows or return records."""

    offset_range: OffsetRange
    compaction_policy: CompactionPolicy
    cut_taken_ms: int


class StoreReader(DataSourceReader):
    """Reads `options.store` as of a cut. Raises ConfigError if the store doesn't exist."""

    def __init__(self, options: ReadOptions) -> None:
        assert options.store is not None
        self._store = options.store
        self._topic = _resolve_changelog(options)
        self._options = replace(options, serdes=pin_registry_schemas(options.serdes, self._topic))

    @property
    def schema(self) -> StructType:
        """Return the columns of the read."""
        return self._create_decoder().schema

    def partitions(self) -> list[InputPartition]:
        """Plan the tasks: one for each changelog partition, or splits to read its records."""
        options = self._options
        cut = resolve_cut(options)
        store = require_store(cut, self._store)
        ranges = _list_changelog_ranges(options, cut, store)
        admin = options.access.create_admin()
        compaction = CompactionPolicy.from_topic_settings(
            admin.fetch_topic_settings([store.changelog])[store.changelog]
        )
        if options.content is ReadContent.CHANGELOG:
            ranges = list(split_ranges(ranges, options.records_per_split))
        return [InputPartition(StoreReadTask(each, compaction, cut.taken_ms)) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Yield a task's rows of the store, or its changelog records, as Arrow batches."""
        if partition.value is None:  # Spark's own partition if none are planned
            return
        options = self._options
        task: StoreReadTask = partition.value
        columns = self._create_decoder()
        if options.content is ReadContent.CHANGELOG:
            headers = options.serdes.headers
            for raw in fetch_batches(
                options.access, options.isolation, task.offset_range, with_headers=headers
            ):
                yield columns.decode_batch(raw)
            return
        for batch, valid in self._read_rows(task):
            yield columns.decode_batch(batch, valid)

    def _create_decoder(self) -> BatchDecoder:
        """Create the decoder for the columns of the read: records, rows or versions."""
        options, row_kind = self._options, RowKind.TABLE
        is_changelog = options.content is ReadContent.CHANGELOG
        if options.versioned is VersionedRead.EVERY and not is_changelog:
            row_kind = RowKind.VERSIONS
        return BatchDecoder(options.serdes, self._topic, row_kind)

    def _read_rows(self, task: StoreReadTask) -> Iterator[StoreRows]:
        """Rebuild a store's rows from a task's changelog range: latest values, or versions."""
        options, below = self._options, task.offset_range
        if options.versioned is VersionedRead.NO:
            table = LatestRecords(below.topic, below.partition)
            self._load_records(table, task)
            return table.iterate_live_rows(options.serdes, options.retention_ms)
        versions = RecordVersions(below.topic, below.partition, options.retention_ms)
        self._load_records(versions, task)
        return versions.iterate_versions(all_versions=options.versioned is VersionedRead.EVERY)

    def _load_records(self, table: LatestRecords | RecordVersions, task: StoreReadTask) -> None:
        """Load the changelog up to the cut. Raises UserError if needed records may be gone."""
        options, below = self._options, task.offset_range
        for raw in fetch_batches(options.access, options.isolation, below):
            table.add_batch(raw)
        where = Partition(below.topic, below.partition)
        end = max(
            options.access.create_admin().fetch_last_stable_offsets([where])[where], below.until
        )
        reading = ChangelogRead(
            self._store,
            below,
            end,
            table.record_count,
            table.latest_by_key.keys(),
            task.cut_taken_ms,
        )
        above = OffsetRange(below.topic, below.partition, below.until, end)
        with closing(fetch_batches(options.access, options.isolation, above)) as records:
            check_rows_survived_compaction(
                reading,
                task.compaction_policy,
                _LeaderLogInspector(options.access, below, above),
                records,
                time.time_ns() // 1_000_000,
            )


@dataclass(frozen=True, slots=True)
class _LeaderLogInspector:
    """Determines from the record batches of a changelog's leader what compaction has removed."""

    access: BrokerAccess
    below_cut: OffsetRange
    above_cut: OffsetRange

    def count_removed_offsets(self) -> int:
        return scan_range(self.access, self.below_cut).removed_count

    def find_last_segment_offset(self) -> int:
        return find_last_segment_offset(self.access, self.above_cut)


def resolve_cut(options: ReadOptions) -> Cut:
    """Return the options' cut, or take one. Raises ConfigError for a cut of another application."""
    cut, name = options.limits.cut, options.application_id or ""
    if cut is None:
        # This imports a client of group coordinators, which most of Spark's processes don't need.
        from streams.spark.cuts.taking import take_cut

        return take_cut(name, options.access)
    if cut.application_id != name:
        raise ConfigError(
            f"the cut is of application {cut.application_id!r}, and option application_id is "
            f"{name!r}"
        )
    return cut


def require_store(cut: Cut, name: str) -> StoreCut:
    """Return the cut's store of this name. Raises ConfigError, listing the stores, without one."""
    if name not in cut.stores:
        stores = ", ".join(sorted(cut.stores)) or "none"
        raise ConfigError(
            f"application {cut.application_id!r} has no store {name!r} with a changelog; it has "
            f"{stores}. A table that is restored from its own topic is known to a cut that was "
            "taken of the App: read_cut(app). A store without a changelog can't be read"
        )
    return cut.stores[name]


def _resolve_changelog(options: ReadOptions) -> str:
    """Return the changelog of the store that the options name."""
    cut, store = options.limits.cut, options.store or ""
    if cut is not None:
        return require_store(cut, store).changelog
    return f"{options.application_id}-{store}-changelog"


def _list_changelog_ranges(options: ReadOptions, cut: Cut, store: StoreCut) -> list[OffsetRange]:
    """List the changelog's range of offsets up to the cut, for each of its partitions.

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
    admin = options.access.create_admin()
    ids = admin.fetch_topic_ids([store.changelog])
    refuse_topic_recreated_since_cut(cut, store.changelog, ids[store.changelog])
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
        if options.versioned is not VersionedRead.NO and start > store.expired.get(
            partition.number, 0
        ):
            raise UserError(
                f"store {options.store!r} can't be read as of the cut: {partition} begins at "
                f"offset {start}, and was written again above the cut's position since. Take a "
                "newer one; or have cuts readable for longer with the setting cut_retention_ms"
            )
        if position > end:
            raise UserError(
                f"store {options.store!r} can't be read as of the cut: {partition} ends at offset "
                f"{end}, and the cut is at {position}. The changelog was deleted and made again "
                "since, or these are other brokers"
            )
        ranges.append(OffsetRange(*partition, min(start, position), position))
    return ranges
