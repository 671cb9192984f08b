"""Summarize the recorded measurements of several machines, days and commits in one table.

    BENCH_RECORD=measured make bench OPTIONS=--quick
    python -m benchmarks.report measured [from-another-machine ...] --to measurements.parquet

It collects what `benchmarks.recorded` has kept into one directory of Parquet, beside what is in it
already, each measurement once; and sums it up with Spark SQL. A ratio says how many times better
than the baseline of its case, measured on the same machine in the same run.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.recorded import RATE
from streams.errors import ConfigError, UserError
from streams.processes.error_exit import report_error as reported
from streams.spark.commands import Master, SparkSettings, open_spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

SCHEMA = (
    "bench STRING, `case` STRING, way STRING, unit STRING, round INT, value DOUBLE, "
    "baseline BOOLEAN, run STRING, at TIMESTAMP, machine STRING, cpu STRING, cores INT, "
    "system STRING, python STRING, packages MAP<STRING, STRING>, commit STRING"
)
_KEY = ["run", "bench", "case", "way", "unit", "round"]
SUMMARY = f"""
WITH summed AS (
    SELECT bench, `case`, way, unit, machine, cores, date(at) AS day, commit, run, baseline,
           count(*) AS rounds, median(value) AS middle, (max(value) - min(value)) AS width
    FROM measurements
    GROUP BY bench, `case`, way, unit, machine, cores, date(at), commit, run, baseline
)
SELECT ours.bench, ours.`case`, ours.way, ours.unit, ours.machine, ours.cores, ours.day,
       ours.commit, ours.rounds, ours.middle AS median,
       try_divide(ours.width, abs(ours.middle)) AS spread,
       CASE WHEN ours.unit = '{RATE}' THEN try_divide(ours.middle, base.middle)
            ELSE try_divide(base.middle, ours.middle) END AS ratio
FROM summed AS ours
LEFT JOIN summed AS base
    ON base.baseline AND NOT ours.baseline AND base.run = ours.run AND base.bench = ours.bench
    AND base.`case` = ours.`case` AND base.unit = ours.unit
ORDER BY ours.bench, ours.`case`, ours.unit, ours.machine, ours.day, ours.run, ours.baseline,
         ours.way
"""
"""Median, spread (widest difference of rounds by the median) and ratio of each way of each case."""


def collect(spark: SparkSession, directories: list[Path], to: Path) -> DataFrame:
    """Merge the recorded measurements of directories into the Parquet `to`, and return all of it.

    Raises ConfigError where a directory has none.
    """
    files: list[str] = []
    for directory in directories:
        files += map(str, sorted(directory.glob("*.jsonl")))
        if not any(directory.glob("*.jsonl")):
            raise ConfigError(
                f"{directory} has no measurements: BENCH_RECORD={directory} lets a benchmark keep "
                "what it measures"
            )
    found = spark.read.schema(SCHEMA).option("mode", "FAILFAST").json(files)
    if to.exists():
        found = found.unionByName(spark.read.schema(SCHEMA).parquet(str(to)))
    beside, before = (to.with_name(f"{to.name}.{what}") for what in ("part", "before"))
    shutil.rmtree(beside, ignore_errors=True)
    found.dropDuplicates(_KEY).coalesce(1).write.parquet(str(beside))
    if to.exists():
        to.rename(before)
    beside.rename(to)
    shutil.rmtree(before, ignore_errors=True)
    return spark.read.schema(SCHEMA).parquet(str(to))


def summary(measurements: DataFrame) -> list[Row]:
    """Summarize measurements to a row for each case, way, machine, day and run."""
    measurements.createOrReplaceTempView("measurements")
    return measurements.sparkSession.sql(SUMMARY).collect()


def table(rows: list[Row]) -> Table:
    """Create a table, for people to read, of the rows of the summary."""
    summary_table = Table(title="measured")
    for column in ("bench", "case", "way", "machine", "day", "commit"):
        summary_table.add_column(column)
    for column in ("rounds", "median", "spread", "ratio"):
        summary_table.add_column(column, justify="right")
    for row in rows:
        summary_table.add_row(
            row["bench"],
            row["case"],
            row["way"],
            f"{row['machine']}, {row['cores']} cores",
            str(row["day"]),
            row["commit"],
            str(row["rounds"]),
            _format_value(row["median"], row["unit"]),
            "" if row["spread"] is None else f"{100 * row['spread']:.0f} %",
            "" if row["ratio"] is None else f"{row['ratio']:.2f}",
        )
    return summary_table


def _format_value(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if abs(value) >= 1_000 else f"{value:,.2f} {unit}"


def main(
    directories: Annotated[list[Path], typer.Argument(help="Where measurements were kept.")],
    to: Annotated[Path, typer.Option(help="The Parquet that they are collected in.")],
    master: Master = None,
    settings: SparkSettings = None,
) -> None:
    """Collect recorded measurements, and print their summary."""
    try:
        for directory in directories:
            if not directory.is_dir():
                raise ConfigError(f"{directory} is no directory")
    except UserError as error:
        raise typer.Exit(reported(error)) from None
    with open_spark_session("millrace benchmarks", master, settings) as spark:
        rows = summary(collect(spark, directories, to))
    width = None if sys.stdout.isatty() else 200
    Console(width=width).print(table(rows))


if __name__ == "__main__":
    typer.run(main)
