"""Compare exported rows with the rows that their topics still have.

Digests of runs of offsets are compared first, and where they differ the rows of the run by a hash
of their columns. Records that compaction or retention has removed since are no error: exports are
made to outlast them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.spark.exporting.export import EXPORTED_COLUMNS
from streams.spark.exporting.manifest import ExportManifest
from streams.spark.source.broker_access import (
    START_TIMEOUT_S,
    BrokerAccess,
    translate_unanswered_requests,
)
from streams.spark.source.frames import read_topic_offsets

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FirstOffset: TypeAlias = int
EndOffset: TypeAlias = int

_RUN_OFFSETS = 10_000
"""Offsets that share a digest."""
_NAMED_ROWS_MAX = 20
"""Rows of a topic that are named one by one."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Represents a difference between a topic and its exported rows, as a line of text.

    `is_gone`: records were exported, and their topic has them no longer.
    """

    text: str
    is_gone: bool = False


def compare_topics(
    spark: SparkSession,
    directory: Path,
    manifests: Sequence[ExportManifest],
    readable_paths: Sequence[str],
    access: BrokerAccess,
) -> Iterator[Finding]:
    """Compare each topic with its rows in the readable files; yield each difference.

    Raises StreamsError if brokers don't answer.
    """
    admin = access.create_admin()
    counts = admin.fetch_partition_counts_at_start(START_TIMEOUT_S)
    ids = {name: topic.topic_id for each in manifests for name, topic in each.topics.items()}
    for topic, topic_id in sorted(ids.items()):
        spans = _find_exported_spans(topic, manifests)
        if not spans:
            continue
        if topic not in counts:
            yield Finding(f"topic {topic} is gone", is_gone=True)
            continue
        with translate_unanswered_requests(f"{topic} can't be asked for"):
            now = admin.fetch_topic_ids([topic])[topic]
            begins = admin.fetch_earliest_offsets(list(spans))
            ends = admin.fetch_last_stable_offsets(list(spans))
            policy = admin.fetch_topic_settings([topic])[topic].get("cleanup.policy", "")
        if now != topic_id:
            yield Finding(f"topic {topic} is gone: another of its name was made", is_gone=True)
            continue
        yield from _compare_ends(spans, begins, ends)
        firsts = {p: max(first, begins[p]) for p, (first, _) in spans.items()}
        untils = {p: min(until, ends[p]) for p, (_, until) in spans.items()}
        untils = {p: until for p, until in untils.items() if firsts[p] < until}
        if untils:
            files = _read_files(spark, directory, topic, readable_paths)
            files = files.where(_create_offset_limits_condition(firsts, untils))
            there = read_topic_offsets(spark, access, topic, firsts, untils, headers="true")
            yield from _compare_rows(topic, files, there, is_compacted="compact" in policy)


def _find_exported_spans(
    topic: str, manifests: Sequence[ExportManifest]
) -> dict[Partition, tuple[FirstOffset, EndOffset]]:
    """Return the first exported offset of each partition and the offset after the last one.

    They have no gap.
    """
    found: dict[Partition, tuple[int, int]] = {}
    for manifest in manifests:
        for file in manifest.files:
            if file.topic == topic:
                partition = Partition(topic, file.partition)
                first, until = found.get(partition, (file.first, file.until))
                found[partition] = min(first, file.first), max(until, file.until)
    return found


def _read_files(
    spark: SparkSession, directory: Path, topic: str, readable_paths: Sequence[str]
) -> DataFrame:
    """Return the rows of a topic in the files that can be read."""
    paths = [path for path in readable_paths if f"/topic={topic}/" in path]
    if not paths:
        return spark.createDataFrame([], EXPORTED_COLUMNS)
    return spark.read.schema(EXPORTED_COLUMNS).option("basePath", str(directory)).parquet(*paths)


def _compare_ends(
    spans: Mapping[Partition, tuple[int, int]],
    begins: Mapping[Partition, int],
    ends: Mapping[Partition, int],
) -> Iterator[Finding]:
    """Yield a finding for each partition that has lost exported offsets at one of its ends."""
    for partition, (first, until) in sorted(spans.items()):
        if until > ends[partition]:
            yield Finding(
                f"{partition} ends at offset {ends[partition]}, and was exported up to {until}"
            )
        if first < begins[partition]:
            last = min(until, begins[partition]) - 1
            yield Finding(
                f"{partition} {first}..{last}: gone from the topic (deleted)", is_gone=True
            )


def _compare_rows(
    topic: str, files: DataFrame, records: DataFrame, *, is_compacted: bool
) -> Iterator[Finding]:
    """Compare exported and topic rows in those runs of offsets whose digests differ."""
    hashes = _hash_rows(files, is_exported=True).unionAll(_hash_rows(records, is_exported=False))
    # A row that is exported twice and gone from the topic leaves the parity, but not the surplus.
    runs = (
        hashes.groupBy("partition", "run")
        .agg(
            F.sum(F.when(F.col("is_exported"), 1).otherwise(-1)).alias("surplus"),
            F.bit_xor("hash").alias("parity"),
        )
        .where("surplus <> 0 OR parity <> 0")
        .select("partition", "run")
        .collect()
    )
    if not runs:
        return
    differing_runs = hashes.sparkSession.createDataFrame(runs, "partition INT, run BIGINT")
    rows = (
        hashes.join(F.broadcast(differing_runs), ["partition", "run"], "left_semi")
        .groupBy("partition", "offset")
        .agg(
            F.count_if("is_exported").alias("times"),
            F.min(F.when(F.col("is_exported"), F.col("hash"))).alias("ours"),
            F.min(F.when(~F.col("is_exported"), F.col("hash"))).alias("theirs"),
        )
        .withColumn(
            "what",
            F.expr(
                "CASE WHEN times > 1 THEN 'twice' WHEN theirs IS NULL THEN 'gone' "
                "WHEN ours IS NULL THEN 'not exported' WHEN ours <> theirs THEN 'different' END"
            ),
        )
        .where("what IS NOT NULL")
        .persist()
    )
    try:
        lost = (
            rows.where("what = 'gone'")
            .groupBy("partition")
            .agg(F.count("*").alias("n"), F.min("offset").alias("a"), F.max("offset").alias("b"))
        )
        for row in lost.orderBy("partition").collect():
            where = f"{topic}[{row['partition']}] {row['a']}..{row['b']}"
            counted = format_count(row["n"], "record")
            if is_compacted:
                line = f"{where}: {counted} gone from the topic (compacted)"
                yield Finding(line, is_gone=True)
            else:
                yield Finding(
                    f"{where}: {counted} in the export and not in the topic, which is not compacted"
                )
        off = rows.where("what <> 'gone'").orderBy("partition", "offset")
        found = off.limit(_NAMED_ROWS_MAX + 1).collect()
        for row in found[:_NAMED_ROWS_MAX]:
            where = f"{topic}[{row['partition']}] offset {row['offset']}"
            if row["what"] == "different":
                yield Finding(f"{where}: the exported row is not the topic's")
            elif row["what"] == "twice":
                yield Finding(f"{where}: the export has it {row['times']} times")
            else:
                yield Finding(f"{where}: the topic has a record that the export has not")
        if len(found) > _NAMED_ROWS_MAX:
            yield Finding(f"{topic}: and {off.count() - _NAMED_ROWS_MAX} more rows are off")
    finally:
        rows.unpersist()


def _create_offset_limits_condition(
    first_offsets: Mapping[Partition, int], end_offsets: Mapping[Partition, int]
) -> Column:
    """Return a condition for rows whose offsets are within the limits of their partition."""
    found = F.lit(False)
    for partition, until in end_offsets.items():
        offset_fits = F.col("offset").between(first_offsets[partition], until - 1)
        found = found | ((F.col("partition") == partition.number) & offset_fits)
    return found


def _hash_rows(rows: DataFrame, *, is_exported: bool) -> DataFrame:
    """Return partition, run and offset of each row with a hash of its columns.

    Spark's hash passes over nulls, so which columns are null is hashed too.
    """
    columns: list[Any] = ["offset", "key", "value", "timestamp", "headers"]
    nulls = [F.col(name).isNull() for name in columns]
    return rows.select(
        "partition",
        F.floor(F.col("offset") / _RUN_OFFSETS).alias("run"),
        "offset",
        F.xxhash64(*columns, *nulls).alias("hash"),
        F.lit(is_exported).alias("is_exported"),
    )
