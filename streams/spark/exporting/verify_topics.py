"""Compare exported rows with the rows that their topics still have.

Digests of runs of offsets are compared first; where they differ, the rows of the run. Records that
compaction or retention has removed since are no error: exports are made to outlast them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pyspark.sql import functions

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.spark.exporting.export import EXPORTED_COLUMNS
from streams.spark.exporting.manifest import ExportManifest
from streams.spark.reconciliation.inputs import FORMAT, connection_options
from streams.spark.source.broker_access import START_TIMEOUT_S, BrokerAccess

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

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
        spans = _exported_spans(topic, manifests)
        if not spans:
            continue
        if topic not in counts:
            yield Finding(f"topic {topic} is gone", is_gone=True)
            continue
        try:
            now = admin.fetch_topic_ids([topic])[topic]
            begins, ends = (
                admin.fetch_earliest_offsets(list(spans)),
                admin.fetch_last_stable_offsets(list(spans)),
            )
            policy = admin.fetch_topic_settings([topic])[topic].get("cleanup.policy", "")
        except OutcomeUnknown as unknown:
            raise StreamsError(f"{topic} can't be asked for: {unknown}") from None
        if now != topic_id:
            yield Finding(f"topic {topic} is gone: another of its name was made", is_gone=True)
            continue
        yield from _compare_topic(
            spark,
            _read_files(spark, directory, topic, readable_paths),
            _TopicState(topic, spans, begins, ends, compacted="compact" in policy),
            access,
        )


def _exported_spans(
    topic: str, manifests: Sequence[ExportManifest]
) -> dict[Partition, tuple[int, int]]:
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


@dataclass(frozen=True, slots=True)
class _TopicState:
    """Describes a topic's present offsets, and the offsets that were exported from it."""

    name: str
    spans: Mapping[Partition, tuple[int, int]]
    begins: Mapping[Partition, int]
    ends: Mapping[Partition, int]
    compacted: bool

    def readable_spans(self) -> dict[Partition, tuple[int, int]]:
        """Return the exported offsets of each partition that the log still covers."""
        return {
            p: (max(first, self.begins[p]), min(until, self.ends[p]))
            for p, (first, until) in self.spans.items()
            if max(first, self.begins[p]) < min(until, self.ends[p])
        }


def _compare_topic(
    spark: SparkSession, files: DataFrame, topic: _TopicState, access: BrokerAccess
) -> Iterator[Finding]:
    """Compare a topic's offsets and rows with its exported files; yield each difference."""
    for partition, (first, until) in sorted(topic.spans.items()):
        if until > topic.ends[partition]:
            yield Finding(
                f"{partition} ends at offset {topic.ends[partition]}, and was exported up to "
                f"{until}"
            )
        if first < topic.begins[partition]:
            last = min(until, topic.begins[partition]) - 1
            yield Finding(
                f"{partition} {first}..{last}: gone from the topic (deleted)", is_gone=True
            )
    still = topic.readable_spans()
    if not still:
        return
    ours = _hash_rows(files.where(_within_spans_condition(still)))
    theirs = _hash_rows(_read_topic(spark, topic.name, still, access))
    runs = (
        _digest_runs(ours, "ours")
        .join(_digest_runs(theirs, "theirs"), ["partition", "run"], "full_outer")
        .where(~functions.col("ours").eqNullSafe(functions.col("theirs")))
        .select("partition", "run")
        .collect()
    )
    if not runs:
        return
    differing = spark.createDataFrame(runs, "partition INT, run BIGINT")
    yield from _compare_rows(ours, theirs, differing, topic)


def _compare_rows(
    ours: DataFrame, theirs: DataFrame, runs: DataFrame, topic: _TopicState
) -> Iterator[Finding]:
    """Compare exported and topic rows in those runs of offsets whose digests differ."""
    keys = ["partition", "run", "offset"]
    rows = (
        ours.join(functions.broadcast(runs), ["partition", "run"], "left_semi")
        .groupBy(keys)
        .agg(functions.min("hash").alias("ours"), functions.count("*").alias("times"))
        .join(
            theirs.join(
                functions.broadcast(runs), ["partition", "run"], "left_semi"
            ).withColumnRenamed("hash", "theirs"),
            keys,
            "full_outer",
        )
        .where(
            ~functions.col("ours").eqNullSafe(functions.col("theirs"))
            | (functions.col("times") > 1)
        )
        .withColumn(
            "what",
            functions.when(functions.col("times") > 1, "twice")
            .when(functions.col("theirs").isNull(), "gone")
            .when(functions.col("ours").isNull(), "not exported")
            .otherwise("different"),
        )
        .persist()
    )
    try:
        lost = (
            rows.where("what = 'gone'")
            .groupBy("partition")
            .agg(
                functions.count("*").alias("n"),
                functions.min("offset").alias("a"),
                functions.max("offset").alias("b"),
            )
        )
        for row in lost.orderBy("partition").collect():
            where = f"{topic.name}[{row['partition']}] {row['a']}..{row['b']}"
            if topic.compacted:
                line = f"{where}: {row['n']} records are gone from the topic (compacted)"
                yield Finding(line, is_gone=True)
            else:
                yield Finding(
                    f"{where}: {row['n']} records are in the export and not in the topic, which "
                    "is not compacted"
                )
        off = rows.where("what <> 'gone'").orderBy("partition", "offset")
        found = off.limit(_NAMED_ROWS_MAX + 1).collect()
        for row in found[:_NAMED_ROWS_MAX]:
            where = f"{topic.name}[{row['partition']}] offset {row['offset']}"
            if row["what"] == "different":
                yield Finding(f"{where}: the exported row is not the topic's")
            elif row["what"] == "twice":
                yield Finding(f"{where}: the export has it {row['times']} times")
            else:
                yield Finding(f"{where}: the topic has a record that the export has not")
        if len(found) > _NAMED_ROWS_MAX:
            yield Finding(f"{topic.name}: and {off.count() - _NAMED_ROWS_MAX} more rows are off")
    finally:
        rows.unpersist()


def _read_topic(
    spark: SparkSession,
    topic: str,
    spans: Mapping[Partition, tuple[int, int]],
    access: BrokerAccess,
) -> DataFrame:
    """Read the rows of a topic whose offsets are within `spans`."""
    numbers = ",".join(str(partition.number) for partition in spans)
    return (
        spark.read.format(FORMAT)
        .options(**connection_options(access))
        .options(topic=topic, headers="true", partitions=numbers)
        .options(
            offsets_from=_offsets_to_json({p: first for p, (first, _) in spans.items()}),
            offsets_to=_offsets_to_json({p: until for p, (_, until) in spans.items()}),
        )
        .load()
    )


def _offsets_to_json(offsets: Mapping[Partition, int]) -> str:
    """Return offsets by partition as JSON, for an option of the data source."""
    return orjson.dumps({str(p.number): at for p, at in offsets.items()}).decode()


def _within_spans_condition(spans: Mapping[Partition, tuple[int, int]]) -> Column:
    """Return a condition for rows whose offsets are within the `spans` of their partition."""
    found = functions.lit(False)
    for partition, (first, until) in spans.items():
        here = functions.col("partition") == partition.number
        found = found | (
            here & (functions.col("offset") >= first) & (functions.col("offset") < until)
        )
    return found


def _hash_rows(rows: DataFrame) -> DataFrame:
    """Return partition, run and offset of each row with a hash of its other columns.

    Spark's hash passes over nulls, so which columns are null is hashed too.
    """
    columns: list[Any] = ["key", "value", "timestamp", "headers"]
    nulls = [functions.col(name).isNull() for name in columns]
    run = functions.floor(functions.col("offset") / _RUN_OFFSETS)
    return rows.select(
        "partition", run.alias("run"), "offset", functions.xxhash64(*columns, *nulls).alias("hash")
    )


def _digest_runs(rows: DataFrame, column_name: str) -> DataFrame:
    """Return for each run of offsets the number of rows and the sum and parity of their hashes."""
    offset_too = functions.xxhash64("offset", "hash")
    digest = functions.struct(
        functions.count("*").alias("n"),
        functions.sum(offset_too.cast("decimal(38, 0)")).alias("sum"),
        functions.bit_xor(offset_too).alias("parity"),
    )
    return rows.groupBy("partition", "run").agg(digest.alias(column_name))
