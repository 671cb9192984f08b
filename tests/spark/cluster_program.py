"""Run on the cluster: `spark-submit cluster_program.py SERVERS TOPIC [WRONG_PYTHON]`.

Its last line is JSON: how many records it has read, the bytes of their values, where each executor
that read some has Millrace from; the counts of the word count that ran there, and whether its
reconciliation finds no difference; and what is said if the executors run WRONG_PYTHON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from streams.errors import ConfigError
from streams.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

SECRET = "opensesame"


def read(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    """Read the topic in several splits, so that both executors get some."""
    return (
        spark.read.format("millrace")
        .options(bootstrap_servers=servers, topic=topic, records_per_split=300)
        .option("kafka.sasl.password", SECRET)
        .load()
    )


def executor(rows: Iterable[Row]) -> Iterator[tuple[str, str, int, int]]:
    """Yield where this executor works and has Millrace from, its record count, and their bytes."""
    import streams

    sizes = [len(row.value or b"") for row in rows]
    yield os.getcwd(), os.path.abspath(streams.__file__), len(sizes), sum(sizes)


def counts(spark: SparkSession, servers: str) -> dict[str, int]:
    """Return the store of the word count as of a cut."""
    table = (
        spark.read.format("millrace")
        .options(bootstrap_servers=servers, application_id="word-count", store="counts")
        .options(key="string", value="int64")
        .load()
    )
    return {row.key: row.value for row in table.collect()}


def refused(python: str) -> str:
    """Return what a user reads whose executors run this interpreter."""
    os.environ["PYSPARK_PYTHON"] = python
    try:
        with session():
            return "nothing was said"
    except ConfigError as error:
        return str(error)


def main(servers: str, topic: str, wrong_python: str | None = None) -> None:
    with session() as spark:
        frame = read(spark, servers, topic)
        frame.explain(mode="extended")
        table = counts(spark, servers)
        found = [each for each in frame.rdd.mapPartitions(executor).collect() if each[2]]
    answer = {
        "records": sum(records for _, _, records, _ in found),
        "bytes": sum(size for _, _, _, size in found),
        "executors": len({place for place, _, _, _ in found}),
        "streams": sorted({source for _, source, _, _ in found}),
        "counts": table,
        "refused": None if wrong_python is None else refused(wrong_python),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
