"""Find for each result the records of source topics that it was made from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from streams.spark.reconciliation.accounts import KEY_COLUMNS
from streams.spark.reconciliation.derivation.stream_joins import strip_join_prefix

RESULT_COLUMNS = (*KEY_COLUMNS, "value", "timestamp")


def build_row_identity() -> Column:
    """Build a number that identifies a table's row by its key and window.

    It is computed from them, so it is the same in each of Spark's queries.
    """
    return f.xxhash64("key", "window_start")


def select_origins(rows: DataFrame, *columns: str) -> DataFrame:
    """Select the positions of the records that rows were made from, beside `columns`.

    For a join's result that is the left record.
    """
    known = rows.where(f.col("topic").isNotNull())
    topic = strip_join_prefix(f.col("topic")).alias("topic")
    return known.select(*columns, topic, "partition", "offset")


def select_result_origins(results: DataFrame, window_records: Mapping[str, DataFrame]) -> DataFrame:
    """Select the positions of the records that each result of a stream was made from.

    `results` has the columns of MADE. A result of a window that has closed was made from all
    records of the window. `window_records` has these, for each table by the topic that stands for
    it in `results`.
    """
    if not window_records:
        return select_origins(results, *RESULT_COLUMNS)
    is_of_table = f.col("topic").isin(list(window_records))
    records = reduce(
        DataFrame.unionByName,
        (
            select_origins(
                each.withColumns({"table": f.lit(topic), "row": build_row_identity()}),
                "table",
                "row",
            )
            for topic, each in window_records.items()
        ),
    )
    of_tables = results.where(is_of_table).select(
        *RESULT_COLUMNS, f.col("topic").alias("table"), f.col("offset").alias("row")
    )
    return (
        of_tables.join(records, ["table", "row"])
        .drop("table", "row")
        .unionByName(select_origins(results.where(~is_of_table), *RESULT_COLUMNS))
    )
