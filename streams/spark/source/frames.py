"""Read offsets of a topic as a DataFrame, for what reconciles and verifies on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import orjson
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from streams.common.topic_partitions import Partition
from streams.spark.cuts.cut import Cut
from streams.spark.source.broker_access import BrokerAccess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "millrace"


def read_topic_offsets(
    spark: SparkSession,
    access: BrokerAccess,
    topic: str,
    first_offsets: Mapping[Partition, int],
    end_offsets: Mapping[Partition, int],
    **options: str,
) -> DataFrame:
    """Read a topic's records between offsets, of the partitions that `end_offsets` has.

    `options`: further ones of the data source.
    """
    found = build_topic_read_options(access, topic, first_offsets, end_offsets)
    return spark.read.format(FORMAT).options(**found).options(**options).load()


def build_topic_read_options(
    access: BrokerAccess,
    topic: str,
    first_offsets: Mapping[Partition, int],
    end_offsets: Mapping[Partition, int],
) -> dict[str, str]:
    """Return the data source's options for reading a topic's records between offsets.

    Read are the partitions that `end_offsets` has.
    """
    return {
        **access.to_options(),
        "topic": topic,
        "partitions": ",".join(str(p.number) for p in end_offsets),
        "offsets_from": _format_offsets(first_offsets),
        "offsets_to": _format_offsets(end_offsets),
    }


def exclude_runs_beyond_cut(records: DataFrame, cut: Cut) -> DataFrame:
    """Exclude the records below the ends of written topics whose transactions are not in the cut.

    `records` has the columns `topic`, `partition` and `offset`.
    """
    beyond = [(*partition, *run) for partition, runs in cut.beyond.items() for run in runs]
    if not beyond:
        return records
    # A condition for each run would make an expression so deep that Spark's planner fails.
    runs = records.sparkSession.createDataFrame(
        beyond, "run_topic STRING, run_partition INT, run_first BIGINT, run_last BIGINT"
    )
    is_beyond = (
        (F.col("topic") == F.col("run_topic"))
        & (F.col("partition") == F.col("run_partition"))
        & F.col("offset").between(F.col("run_first"), F.col("run_last"))
    )
    return records.join(F.broadcast(runs), is_beyond, "left_anti")


def _format_offsets(offsets: Mapping[Partition, int]) -> str:
    """Format offsets by partition number as JSON, for an option of the data source."""
    return orjson.dumps({str(p.number): at for p, at in offsets.items()}).decode()
