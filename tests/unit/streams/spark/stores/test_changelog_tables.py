"""Test that a store's rows come in batches that Arrow and the JVM can hold."""

from __future__ import annotations

from streams.spark.source.fetching import RawBatch
from streams.spark.source.options import SerdeOptions
from streams.spark.stores.changelog_tables import LatestRecords, RecordVersions

MB = 1 << 20


def records(sizes: list[int]) -> RawBatch:
    """Return a record with another key for each size of a value, all of one piece of memory."""
    whole = bytes(max(sizes))
    count = len(sizes)
    keys: list[bytes | None] = [b"%d" % number for number in range(count)]
    values: list[bytes | None] = [whole[:size] if size < len(whole) else whole for size in sizes]
    return RawBatch("t", 0, keys, values, [*range(count)], [*range(count)], None)


def test_batches_of_a_table_and_of_versions_are_limited_in_rows_and_bytes() -> None:
    for sizes, wanted in (
        ([1] * 10_000, [10_000]),
        ([1] * 10_001, [10_000, 1]),
        ([10 * MB] * 20, [6, 6, 6, 2]),
        ([1, 100 * MB, 1], [1, 1, 1]),
    ):
        table, versions = LatestRecords("t", 0), RecordVersions("t", 0, None)
        for each in (table, versions):
            each.add_batch(records(sizes))
        rows = [*table.iterate_live_rows(SerdeOptions(), None)]
        assert [len(each.batch) for each in rows] == wanted
        assert [at for each in rows for at in each.batch.offsets] == [*range(len(sizes))]
        found = [*versions.iterate_versions(all_versions=True)]
        assert [len(each.batch) for each in found] == wanted
