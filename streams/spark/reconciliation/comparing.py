"""Compare expected rows with actual ones, and mark each as ok, missing, unexpected, ...

    a table   a row for each key (and window): `ok`, `missing` (expected, not found), `unexpected`
              (found, not expected), `different`. Found is the last record of the key by its offset;
              one without a value is a deletion, and the same as none. A key belongs in one
              partition: rows that it has in others are `unexpected`, unless `keys_span_partitions`
    a stream  records are counted by key, value and, where it is expected, timestamp: as many as
              both have are `ok`, the others `missing` or `unexpected`. None is `different`: which
              of them was meant to be which can't be told

Bytes are compared; where they differ, what they say (`ValueComparison`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from streams.spark.reconciliation.accounts import KEY_COLUMNS, AccountKind
from streams.spark.reconciliation.serde_columns import compare_values, to_canonical_bytes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from streams.serdes import Serde

ColumnName: TypeAlias = str
ColumnType: TypeAlias = str

FOUND = "topic STRING, partition INT, offset BIGINT"
"""What found rows have beside the columns of ROW: where they are."""
_ELSEWHERE = "the key has a row in another partition, too"
_MOVED = "its timestamp is %d ms, and %d was expected"
_COMPARED = (
    "verdict STRING, key BINARY, window_start BIGINT, window_end BIGINT, expected BINARY, "
    "found BINARY, expected_ms BIGINT, found_ms BIGINT, count BIGINT, "
    "positions ARRAY<STRUCT<topic:STRING,partition:INT,offset:BIGINT>>, why STRING, "
    "expected_rows BIGINT"
)
"""The columns of a comparison."""
POSITIONS_MAX = 1_000
"""How many positions are named of equal records of a stream."""


class RowVerdict(StrEnum):
    """Names the possible results of comparing one row."""

    OK = "ok"
    MISSING = "missing"
    UNEXPECTED = "unexpected"
    DIFFERENT = "different"
    DOUBLED = "doubled"
    """It repeats the record before it, which may be as it should. Not off by itself."""


OFF_VERDICTS = (RowVerdict.MISSING, RowVerdict.UNEXPECTED, RowVerdict.DIFFERENT)


@dataclass(frozen=True, slots=True)
class ValueComparison:
    """Describes a comparison of values with different bytes, by what their serde reads.

    `tolerance`: by how much floats may differ, in tables only.
    """

    serde: Serde[Any]
    tolerance: float = 0.0


def compare_rows(
    expected_rows: DataFrame,
    actual_rows: DataFrame,
    kind: AccountKind,
    comparison: ValueComparison,
    *,
    compares_timestamps: bool = False,
    keys_span_partitions: bool = False,
) -> DataFrame:
    """Compare expected rows with actual ones; return each with a row verdict (ok, missing, ...).

    `expected_rows` has the columns of ROW, `actual_rows` those of FOUND too. With
    `compares_timestamps` timestamps must be equal as well. `keys_span_partitions`: a key may have
    rows in several partitions, of which one is as expected.

    Returns `verdict`, `key`, `window_start`, `window_end`, `expected` and `found` (bytes),
    `expected_ms` and `found_ms` (timestamps), `count` (records that the row stands for),
    `positions` (array of topic, partition, offset: where what was found is), `why` (null where the
    verdict says it) and `expected_rows`, which is more than 1 where a table's key was expected
    twice.
    """
    nowhere = [F.lit(None).cast(kind).alias(name) for name, kind in _parse_columns(FOUND)]
    both = expected_rows.select(*KEY_COLUMNS, "value", "timestamp", *nowhere).unionByName(
        actual_rows.select(
            *KEY_COLUMNS, "value", "timestamp", *(name for name, _ in _parse_columns(FOUND))
        )
    )
    if kind is AccountKind.STREAM:
        return _compare_stream(both, comparison, compares_timestamps=compares_timestamps)
    return _compare_table(
        both,
        comparison,
        compares_timestamps=compares_timestamps,
        keys_span_partitions=keys_span_partitions,
    )


def find_repeated_records(actual_rows: DataFrame) -> DataFrame:
    """Find the records that repeat their key's previous record in the same partition.

    Such a record has the same key, value and timestamp. Returns `key`, `window_start`,
    `window_end`, `found`, `positions` (of both).
    """
    in_order = Window.partitionBy("topic", "partition", *KEY_COLUMNS).orderBy("offset")
    previous = F.lag(F.struct("value", "timestamp", "topic", "partition", "offset")).over(in_order)
    position = F.struct("topic", "partition", "offset")
    return (
        actual_rows.withColumn("before", previous)
        .where("before IS NOT NULL AND before.value <=> value AND before.timestamp <=> timestamp")
        .select(
            *KEY_COLUMNS,
            F.col("value").alias("found"),
            F.array(F.struct("before.topic", "before.partition", "before.offset"), position).alias(
                "positions"
            ),
        )
    )


def build_verdict_rows(
    rows: DataFrame, verdict: RowVerdict | Column, **columns: Column | str
) -> DataFrame:
    """Build the rows of a comparison from rows with a verdict, which is one for all or a column.

    Columns of a comparison are those of `columns`, or else the ones of `rows` by their names. Those
    that neither has are null, but `count` and `expected_rows`, which are 1.
    """
    by_name = {name: F.col(name) for name in rows.columns}
    defaults = {"count": F.lit(1), "expected_rows": F.lit(1), **by_name}
    given: dict[str, Column | str] = {**defaults, **columns}
    given["verdict"] = F.lit(verdict.value) if isinstance(verdict, RowVerdict) else verdict
    found = []
    for name, kind in _parse_columns(_COMPARED):
        column = given.get(name, F.lit(None))
        column = F.col(column) if isinstance(column, str) else column
        found.append(column.cast(kind).alias(name))
    return rows.select(*found)


def _compare_table(
    all_rows: DataFrame,
    comparison: ValueComparison,
    *,
    compares_timestamps: bool,
    keys_span_partitions: bool,
) -> DataFrame:
    """Compare a table's rows: a verdict for each key and window, and for each superfluous row."""
    position = F.when(F.col("f").isNotNull(), F.struct("f.topic", "f.partition", "f.offset"))
    rows = _pair_table_rows(all_rows, keys_span_partitions=keys_span_partitions).select(
        *KEY_COLUMNS,
        "expected_rows",
        F.col("e.value").alias("expected"),
        F.col("f.value").alias("found"),
        F.col("e.timestamp").alias("expected_ms"),
        F.col("f.timestamp").alias("found_ms"),
        F.array_compact(F.array(position)).alias("positions"),
        F.when(F.col("number") > 0, _ELSEWHERE).alias("why"),
        compare_values(
            F.col("e.value"), F.col("f.value"), comparison.serde, comparison.tolerance
        ).alias("equal"),
    )
    same = (F.col("expected") == F.col("found")) | F.col("equal")
    if compares_timestamps:
        moved = F.format_string(_MOVED, "found_ms", "expected_ms")
        on_time = F.col("expected_ms") == F.col("found_ms")
        rows = rows.withColumn("why", F.coalesce("why", F.when(same & ~on_time, moved)))
        same &= on_time
    verdict = (
        F.when(F.col("found").isNull(), RowVerdict.MISSING.value)
        .when(F.col("expected").isNull(), RowVerdict.UNEXPECTED.value)
        .when(same, RowVerdict.OK.value)
        .otherwise(RowVerdict.DIFFERENT.value)
    )
    return build_verdict_rows(rows, verdict)


def _pair_table_rows(all_rows: DataFrame, *, keys_span_partitions: bool) -> DataFrame:
    """Pair each key's expected row (`e`) with the last actual row (`f`) of each partition.

    Where a key is in several partitions, the row that is as expected, or else the latest, has
    `number` 0, and the others follow with nothing expected of them.
    """
    is_found = F.col("topic").isNotNull()
    row = F.struct("value", "timestamp", "topic", "partition", "offset")
    last = F.when(is_found, F.struct("topic", "partition", "offset"))
    is_row = ~is_found & F.col("value").isNotNull()
    by_partition = all_rows.groupBy(
        *KEY_COLUMNS, last["topic"].alias("t"), last["partition"].alias("p")
    ).agg(
        F.max(F.when(is_row, F.struct("value", "timestamp"))).alias("e"),
        F.count(F.when(is_row, 1)).alias("expected_rows"),
        F.max_by(row, F.when(is_found, F.col("offset"))).alias("f"),
    )
    rows = by_partition.groupBy(*KEY_COLUMNS).agg(
        F.max("e").alias("e"),
        F.sum("expected_rows").alias("expected_rows"),
        F.collect_list("f").alias("all"),
    )

    def rank_row(row: Column) -> Column:
        is_there, is_same = row["value"].isNotNull(), row["value"].eqNullSafe(F.col("e.value"))
        return F.struct(is_there, is_same, row["offset"], row["partition"], row.alias("f"))

    in_order = F.sort_array(F.transform("all", rank_row), asc=False)
    others = F.lit(not keys_span_partitions)
    counting = F.filter(
        in_order, lambda each, at: (at == 0) | (others & each["f"]["value"].isNotNull())
    )
    each = rows.select("*", F.posexplode_outer(counting).alias("number", "rank"))
    expected = F.when(F.coalesce("number", F.lit(0)) == 0, F.col("e"))
    named = each.select(
        *KEY_COLUMNS, "expected_rows", "number", expected.alias("e"), F.col("rank.f")
    )
    return named.where("e.value IS NOT NULL OR f.value IS NOT NULL")


def _compare_stream(
    all_rows: DataFrame, comparison: ValueComparison, *, compares_timestamps: bool
) -> DataFrame:
    """Compare a stream's records by how often each pair of key and value occurs."""
    is_found = F.col("topic").isNotNull()
    by = [*KEY_COLUMNS, "says", *(["timestamp"] if compares_timestamps else [])]
    position = F.when(is_found, F.struct("topic", "partition", "offset"))
    counted = (
        all_rows.withColumn("says", to_canonical_bytes(F.col("value"), comparison.serde))
        .groupBy(*by)
        .agg(
            F.count(F.when(~is_found, 1)).alias("e"),
            F.count(F.when(is_found, 1)).alias("f"),
            F.first(F.when(~is_found, F.col("value")), ignorenulls=True).alias("expected"),
            F.first(F.when(is_found, F.col("value")), ignorenulls=True).alias("found"),
            F.max(F.when(~is_found, F.col("timestamp"))).alias("expected_ms"),
            F.max(F.when(is_found, F.col("timestamp"))).alias("found_ms"),
            F.slice(F.sort_array(F.collect_list(position)), 1, POSITIONS_MAX).alias("positions"),
        )
    )
    each = F.explode(
        F.array(
            _build_verdict_count(RowVerdict.OK, F.least("e", "f")),
            _build_verdict_count(RowVerdict.MISSING, F.col("e") - F.col("f")),
            _build_verdict_count(RowVerdict.UNEXPECTED, F.col("f") - F.col("e")),
        )
    )
    judged = counted.withColumn("each", each).where("each.count > 0")
    return build_verdict_rows(judged, F.col("each.verdict"), count="each.count")


def _build_verdict_count(verdict: RowVerdict, count: Column) -> Column:
    """Build a struct of a row verdict (ok, missing, ...) and the number of records that have it."""
    return F.struct(F.lit(verdict.value).alias("verdict"), count.alias("count"))


def _parse_columns(schema_ddl: str) -> list[tuple[ColumnName, ColumnType]]:
    """Parse the DDL of a schema into the names of its columns and their types."""
    return [(name, kind) for name, kind in (each.split() for each in schema_ddl.split(", "))]
