"""Run the process of `sessions.Session`: read topics as told, line by line, and say how long.

    python -m tests.spark.connector.reads JARS

Runs with the PySpark that is first on the path. Answers are lines of JSON on the standard output,
which nothing else writes to.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")
"""What both sources have."""
_LATEST = {"startingOffsets": "earliest", "endingOffsets": "latest"}


def main(jars: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = _session(jars)
    for line in sys.stdin:
        asked = json.loads(line)
        begin = time.perf_counter()
        frame = _frame(spark, asked)
        if asked.get("into") is None:
            frame.select(*_COLUMNS).write.format("noop").mode("overwrite").save()
        else:
            columns = frame.select("partition", "offset", "key", "value")
            columns.write.parquet(asked["into"])
        seconds = time.perf_counter() - begin
        answers.write(json.dumps({"seconds": seconds, "pyspark": pyspark.__version__}) + "\n")
        answers.flush()
    spark.stop()


def _session(jars: str) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("side by side")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.jars", jars)
    )
    return builder.getOrCreate()


def _frame(spark: SparkSession, asked: dict[str, Any]) -> DataFrame:
    options = asked.get("options", {})
    if asked["source"] == "connector":
        return (
            spark.read.format("kafka")
            .options(**{"kafka.bootstrap.servers": asked["servers"], "subscribe": asked["topic"]})
            .options(**_LATEST, **{"kafka.isolation.level": "read_committed"}, **options)
            .load()
        )
    from streams.spark import MillraceDataSource

    spark.dataSource.register(MillraceDataSource)
    return (
        spark.read.format("millrace")
        .options(bootstrap_servers=asked["servers"], topic=asked["topic"], **options)
        .load()
    )


if __name__ == "__main__":
    main(sys.argv[1])
