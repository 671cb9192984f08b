"""Assign records to windows by Spark SQL, leaving out those that came too late.

A step's stream time is the largest timestamp that it was given in its partition, and a window takes
no records when stream time is the grace past its end. Within a topic's partition the order is that
of the offsets, so what was late follows from the inputs alone.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from state.keys import TIME_MAX
from streams.windows import TimeWindows, UnlimitedWindows


def assign_windows(
    records: DataFrame, windows: TimeWindows | UnlimitedWindows, *, is_ordered: bool
) -> DataFrame:
    """Return a row for each record and each window that accepts it.

    `window_start` and `window_end` are in ms. `is_ordered`: the records of a partition are of one
    topic, and what was late is left out. Otherwise `count_possibly_late` counts what may have been.
    """
    if isinstance(windows, UnlimitedWindows):
        start, end = f.lit(windows.start_ms), f.lit(TIME_MAX)
        kept = records.where(f.col("timestamp") >= windows.start_ms)
        return kept.withColumn("window_start", start.cast("long")).withColumn("window_end", end)
    rows = records
    if is_ordered:
        so_far = (
            Window.partitionBy("partition")
            .orderBy("offset", "number")
            .rowsBetween(Window.unboundedPreceding, Window.currentRow)
        )
        rows = rows.withColumn("stream_time", f.max("timestamp").over(so_far))
    rows = _explode_windows(rows, windows)
    if is_ordered:
        rows = rows.where(~_build_late_condition(windows))
    return rows


def count_possibly_late(records: DataFrame, windows: TimeWindows) -> int:
    """Count the records that would be late if all others of their partition came before them.

    A record counts once for each window. 0 says that nothing was late, whatever the order was.
    """
    whole = Window.partitionBy("partition")
    rows = records.withColumn("stream_time", f.max("timestamp").over(whole))
    return _explode_windows(rows, windows).where(_build_late_condition(windows)).count()


def select_closed_windows(rows: DataFrame, records: DataFrame, windows: TimeWindows) -> DataFrame:
    """Select the windows that are closed after all `records` of their partition."""
    times = records.groupBy("partition").agg(f.max("timestamp").alias("stream_time"))
    return (
        rows.join(f.broadcast(times), "partition")
        .where(_build_late_condition(windows))
        .drop("stream_time")
    )


def _build_late_condition(windows: TimeWindows) -> Column:
    """Build the condition that a window has closed, grace included, at `stream_time`."""
    return f.col("window_end") <= f.col("stream_time") - windows.grace_ms


def _explode_windows(rows: DataFrame, windows: TimeWindows) -> DataFrame:
    """Return a row for each record and window of its timestamp."""
    size, advance = windows.size_ms, windows.advance_ms
    earliest = f.greatest(f.col("timestamp") - f.lit(size - advance), f.lit(0))
    first = earliest - f.pmod(earliest, f.lit(advance))
    starts = f.explode(f.sequence(first, f.col("timestamp"), f.lit(advance).cast("long")))
    # An advance may leave no window that begins before the record.
    rows = rows.where(first <= f.col("timestamp")).withColumn("window_start", starts)
    return rows.withColumn("window_end", f.col("window_start") + size)
