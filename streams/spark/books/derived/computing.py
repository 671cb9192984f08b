"""Computing: counts and commutative aggregations by Spark's own grouping.

The records on their way to the step are tapped, cut into windows and grouped by their key's bytes;
none of the application's own operators has a part in it. Only what the user wrote is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from streams.spark.books.derived.arrow import map_in_arrow
from streams.spark.books.derived.fold import FOLDED_DDL, Fold
from streams.spark.books.derived.shipping import shipped
from streams.spark.books.derived.windowing import closed, in_windows, possibly_late
from streams.topology.nodes import ProcessorNode, StoreKind, StoreSpec
from streams.topology.rules import Aggregated
from streams.windows import TimeWindows, UnlimitedWindows


def is_computable(node: ProcessorNode, spec: StoreSpec) -> bool:
    """Whether inputs in any order give the step's results, as far as the step says."""
    rule = node.rule
    if not isinstance(rule, Aggregated) or not rule.commutative or spec.ttl_ms is not None:
        return False
    match rule.windows:
        case None:
            return spec.kind is StoreKind.KEY_VALUE
        case TimeWindows(idle_close_ms=None) | UnlimitedWindows():
            return True
    return False


def takes_values(rule: Aggregated) -> bool:
    """Whether the step looks at more of a value than whether there is one."""
    return not rule.folding.counts


@dataclass(frozen=True, slots=True)
class Computed:
    """A step's table. `rows`: key, window_start, window_end, value, timestamp, partition; `records`
    are those that came to the step."""

    node: ProcessorNode
    rule: Aggregated
    spec: StoreSpec
    rows: DataFrame
    records: DataFrame

    @property
    def closed(self) -> DataFrame:
        """Of `rows` the windows that have closed."""
        assert isinstance(self.rule.windows, TimeWindows)
        return closed(self.rows, self.records, self.rule.windows)

    @property
    def expired(self) -> DataFrame | None:
        """Key and window of rows that the store may have let go."""
        if self.spec.retention_ms is None or isinstance(self.rule.windows, UnlimitedWindows):
            return None
        return expired(self.rows, "window_start", self.spec.retention_ms)


def computed(
    node: ProcessorNode, spec: StoreSpec, records: DataFrame, *, in_order: bool
) -> Computed | str:
    """The table of `node`, or why it can't be told. `records`: what was tapped on the way to it."""
    rule = node.rule
    assert isinstance(rule, Aggregated)
    rows = records
    match rule.windows:
        case None:
            rows = rows.where(f.col("value").isNotNull())
        case TimeWindows() as windows:
            late = 0 if in_order else possibly_late(rows, windows)
            if late:
                return (
                    f"{late} times a record may have come too late for its window: that depends "
                    "on an order which the inputs don't tell"
                )
            rows = in_windows(rows, windows, in_order=in_order)
        case UnlimitedWindows() as windows:
            rows = in_windows(rows, windows, in_order=in_order)
    if rule.folding.counts and spec.value.name == "int64":
        table = _counted(rows)
    else:
        table = _folded(node, rule, spec, rows)
    return Computed(node, rule, spec, table, records)


def expired(rows: DataFrame, time: str, retention_ms: int) -> DataFrame:
    """Of windows with a `partition` those whose `time` is `retention_ms` behind the latest."""
    latest = rows.groupBy("partition").agg(f.max(time).alias("latest"))
    gone = rows.join(f.broadcast(latest), "partition").where(
        f.col(time) <= f.col("latest") - retention_ms
    )
    return gone.select("key", "window_start", "window_end")


def big_endian(number: Column) -> Column:
    """A number as eight bytes."""
    return f.unhex(f.lpad(f.hex(number.cast("long")), 16, "0"))


def _counted(rows: DataFrame) -> DataFrame:
    counted = rows.groupBy("key", "window_start", "window_end").agg(
        big_endian(f.count("*")).alias("value"),
        f.max("timestamp").alias("timestamp"),
        f.first("partition").alias("partition"),
    )
    return counted.select("key", "window_start", "window_end", "value", "timestamp", "partition")


def _folded(node: ProcessorNode, rule: Aggregated, spec: StoreSpec, rows: DataFrame) -> DataFrame:
    fold = Fold(shipped((node.name, rule.folding, spec.key, spec.value)))
    ordered = rows.repartition("key", "window_start").sortWithinPartitions(
        "key", "window_start", "timestamp", "topic", "offset", "number"
    )
    return map_in_arrow(ordered, fold, FOLDED_DDL)
