"""Compute counts and commutative aggregations by Spark's own grouping.

The records on their way to the step are captured, put into windows and grouped by their key's
bytes; none of the application's own operators has a part in it. Only what the user wrote is the
same.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from streams.graph.nodes import ProcessorNode, StoreKind, StoreSpec
from streams.spark.reconciliation.accounts import RefusalReason
from streams.spark.reconciliation.derivation.executors import map_on_executors
from streams.spark.reconciliation.derivation.fold import FOLDED_SCHEMA, fold_rows
from streams.spark.reconciliation.derivation.windowing import (
    assign_windows,
    count_possibly_late,
    select_closed_windows,
)
from streams.topology.rules import AggregationRule
from streams.windows import TimeWindows, UnlimitedWindows


def is_computable(node: ProcessorNode, spec: StoreSpec) -> bool:
    """Return whether Spark can compute a step: an aggregation that ignores record order."""
    rule = node.rule
    if not isinstance(rule, AggregationRule) or not rule.commutative or spec.ttl_ms is not None:
        return False
    match rule.windows:
        case None:
            return spec.kind is StoreKind.KEY_VALUE
        case TimeWindows(idle_close_ms=None) | UnlimitedWindows():
            return True
    return False


@dataclass(frozen=True, slots=True)
class ComputedTable:
    """Represents the table of a step, as computed by Spark.

    `rows`: key, window_start, window_end, value, timestamp, partition; `records`: those that came
    to the step; `window_records`: those that count, once for each of their windows.
    """

    rule: AggregationRule
    spec: StoreSpec
    rows: DataFrame
    records: DataFrame
    window_records: DataFrame

    @property
    def closed_rows(self) -> DataFrame:
        """Return the rows whose windows have closed."""
        assert isinstance(self.rule.windows, TimeWindows)
        return select_closed_windows(self.rows, self.records, self.rule.windows)

    @property
    def expired_rows(self) -> DataFrame | None:
        """Return key and window of rows that the store may have dropped; None if no row expires."""
        if self.spec.retention_ms is None or isinstance(self.rule.windows, UnlimitedWindows):
            return None
        return select_expired_windows(self.rows, "window_start", self.spec.retention_ms)


def compute_table(
    step: str, rule: AggregationRule, spec: StoreSpec, records: DataFrame, *, is_ordered: bool
) -> ComputedTable | RefusalReason:
    """Compute the table of an aggregation, or return why it depends on an unknown order.

    `records`: those that were captured on the way to it.
    """
    rows = records
    match rule.windows:
        case None:
            rows = rows.where(f.col("value").isNotNull())
        case TimeWindows() as windows:
            late = 0 if is_ordered else count_possibly_late(rows, windows)
            if late:
                return (
                    f"{late} times a record may have come too late for its window: that depends "
                    "on an order which the inputs don't tell"
                )
            rows = assign_windows(rows, windows, is_ordered=is_ordered)
        case UnlimitedWindows() as windows:
            rows = assign_windows(rows, windows, is_ordered=is_ordered)
    if rule.folding.is_count and spec.value.name == "int64":
        table = _count_rows(rows)
    else:
        ordered = rows.repartition("key", "window_start").sortWithinPartitions(
            "key", "window_start", "timestamp", "topic", "offset", "number"
        )
        work = step, rule.folding, spec.key, spec.value
        table = map_on_executors(ordered, fold_rows, work, FOLDED_SCHEMA)
    return ComputedTable(rule, spec, table, records, rows)


def select_expired_windows(rows: DataFrame, time_column: str, retention_ms: int) -> DataFrame:
    """Select windows at least `retention_ms` older than the latest one of their partition.

    `rows` have a `partition`; `time_column` is that of the window's time.
    """
    latest = rows.groupBy("partition").agg(f.max(time_column).alias("latest"))
    expired_rows = rows.join(f.broadcast(latest), "partition").where(
        f.col(time_column) <= f.col("latest") - retention_ms
    )
    return expired_rows.select("key", "window_start", "window_end")


def encode_int64(number: Column) -> Column:
    """Encode a column of numbers as eight bytes, big-endian."""
    return f.unhex(f.lpad(f.hex(number.cast("long")), 16, "0"))


def _count_rows(rows: DataFrame) -> DataFrame:
    """Count the records of each key and window."""
    counted = rows.groupBy("key", "window_start", "window_end").agg(
        encode_int64(f.count("*")).alias("value"),
        f.max("timestamp").alias("timestamp"),
        f.first("partition").alias("partition"),
    )
    return counted.select("key", "window_start", "window_end", "value", "timestamp", "partition")
