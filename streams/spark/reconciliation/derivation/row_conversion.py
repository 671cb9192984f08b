"""Convert the rows that a replay yields to records of a topic, to table rows, and to origins."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from streams.spark.reconciliation.derivation.aggregation import encode_int64
from streams.spark.reconciliation.derivation.row_schemas import READ
from streams.spark.reconciliation.derivation.stream_joins import strip_join_prefix


def to_source_records(rows: DataFrame, topic: str, *, windowed: bool) -> DataFrame:
    """Convert the rows of a table to records of the topic `topic`, with the columns of READ."""
    key = f.concat("key", encode_int64(f.col("window_start"))) if windowed else f.col("key")
    return rows.select(
        key.alias("key"),
        "value",
        f.lit(topic).alias("topic"),
        f.col("partition").cast("int").alias("partition"),
        f.lit(0).cast("long").alias("offset"),
        "timestamp",
    ).select(*READ.names)


def select_last_rows(output_rows: DataFrame) -> DataFrame:
    """Select the last row of each key, leaving out keys whose last row is a deletion."""
    row = f.struct("value", "timestamp")
    last = output_rows.groupBy("key").agg(f.max_by(row, f.col("number")).alias("last"))
    null = f.lit(None).cast("long")
    return last.where(f.col("last.value").isNotNull()).select(
        "key",
        null.alias("window_start"),
        null.alias("window_end"),
        f.col("last.value").alias("value"),
        f.col("last.timestamp").alias("timestamp"),
    )


def select_origins(rows: DataFrame) -> DataFrame:
    """Select each row's key with the position of the input record that it was made from.

    For a join's result that is the left record.
    """
    known = rows.where(f.col("topic").isNotNull())
    topic = strip_join_prefix(f.col("topic")).alias("topic")
    return known.select("key", topic, "partition", "offset")
