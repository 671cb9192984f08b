"""Test that measurements of several machines and days come into one table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.report import collect, summary, table
from streams.errors import ConfigError

pytestmark = pytest.mark.sampled(2, by="test")

ROOT = Path(__file__).parents[2]


def write(
    directory: Path, machine: str, day: str, run: str, values: dict[str, list[float]]
) -> None:
    """Write a run of a benchmark with `values` of each way; those by hand are the baseline."""
    directory.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = [
        {
            "bench": "throughput",
            "case": "count",
            "way": way.partition(" in ")[0],
            "unit": way.partition(" in ")[2] or "/s",
            "round": number,
            "value": value,
            "baseline": way.startswith("by hand"),
            "run": run,
            "at": f"{day}T10:00:00+00:00",
            "machine": machine,
            "cpu": "fast",
            "cores": 2,
            "system": "Linux",
            "python": "3.11",
            "packages": {"kio": "1"},
            "commit": "abc",
        }
        for way, found in values.items()
        for number, value in enumerate(found)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (directory / f"throughput-{run}.jsonl").write_text(text)


def test_each_machine_and_day_is_a_row_with_median_spread_and_ratio(
    spark: SparkSession, tmp_path: Path
) -> None:
    one, two, to = tmp_path / "one", tmp_path / "two", tmp_path / "all.parquet"
    write(one, "a", "2026-01-01", "r1", {"ours": [80, 100, 90], "by hand": [100, 100, 100]})
    write(two, "b", "2026-01-02", "r2", {"ours": [200], "by hand": [100]})
    write(two, "b", "2026-01-03", "r3", {"ours in s": [2.0], "by hand in s": [1.0]})
    rows = summary(collect(spark, [one, two], to))
    found = {
        (row["machine"], str(row["day"]), row["way"]): (
            row["rounds"],
            row["median"],
            round(row["spread"], 3),
            row["ratio"],
        )
        for row in rows
    }
    assert found == {
        ("a", "2026-01-01", "ours"): (3, 90.0, 0.222, 0.9),
        ("a", "2026-01-01", "by hand"): (3, 100.0, 0.0, None),
        ("b", "2026-01-02", "ours"): (1, 200.0, 0.0, 2.0),
        ("b", "2026-01-02", "by hand"): (1, 100.0, 0.0, None),
        ("b", "2026-01-03", "ours"): (1, 2.0, 0.0, 0.5),  # seconds: less is better
        ("b", "2026-01-03", "by hand"): (1, 1.0, 0.0, None),
    }
    assert table(rows).row_count == 6


def test_what_was_collected_before_stays_and_comes_in_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    one, two, to = tmp_path / "one", tmp_path / "two", tmp_path / "all.parquet"
    write(one, "a", "2026-01-01", "r1", {"ours": [1, 2]})
    write(two, "b", "2026-01-02", "r2", {"ours": [3]})
    assert collect(spark, [one], to).count() == 2
    assert collect(spark, [one, two], to).count() == 3
    assert collect(spark, [two], to).count() == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.parquet", "one", "two"]


def test_a_directory_without_measurements_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="BENCH_RECORD"):
        collect(spark, [tmp_path], tmp_path / "all.parquet")


def test_what_a_benchmark_measures_comes_into_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "benchmarks.dsl", "--records", "1000", "--rounds", "2"]
    environ = {**os.environ, "BENCH_RECORD": str(tmp_path / "measured")}
    subprocess.run(
        [*command, "--only", "filter"], cwd=ROOT, env=environ, check=True, stdout=subprocess.PIPE
    )
    rows = summary(collect(spark, [tmp_path / "measured"], tmp_path / "all.parquet"))
    assert rows
    assert {(row["bench"], row["way"], row["unit"], row["rounds"]) for row in rows} == {
        ("dsl", "ours", "us", 2)
    }
