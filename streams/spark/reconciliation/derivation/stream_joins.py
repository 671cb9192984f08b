"""Join two streams by Spark SQL, where the results don't depend on the order of their records.

Each stream's records are kept until the stream's own time is the retention past them (before, after
and grace together), and a record finds those of the other stream that are kept when it comes. How
far the one stream was read when a record of the other came is not in the inputs: it may have been
read to its end. So a pair has met for certain if both are kept even when all records of their own
streams have come; and where one isn't, there is an order in which the two miss each other.

Values are what the stores' serdes make of them, as for the record that came first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from streams.errors import StreamsError
from streams.graph.nodes import SourceNode, StoreSpec
from streams.operators.stream_join import JoinWindow
from streams.serdes import pickle
from streams.spark.reconciliation.accounts import RefusalReason
from streams.spark.reconciliation.derivation.executors import map_on_executors
from streams.spark.reconciliation.derivation.replay import STEP_PREFIX, pickle_or_cloudpickle
from streams.spark.reconciliation.derivation.row_schemas import (
    READ,
    OutputRow,
    drain_into_batches,
)
from streams.spark.reconciliation.derivation.subgraphs import create_known_results_source
from streams.topology.rules import StreamJoinRule

_PAIR_COLUMNS = ("key", "left", "right", "topic", "partition", "offset", "timestamp")


@dataclass(frozen=True, slots=True)
class JoinedStream:
    """Represents the records that a stream join results in, in no particular order."""

    sources: Sequence[SourceNode]
    rows: DataFrame


def join_streams_or_explain_doubt(
    rule: StreamJoinRule,
    left: DataFrame,
    right: DataFrame,
    stores: tuple[StoreSpec, StoreSpec],
    topics: Sequence[str],
) -> JoinedStream | RefusalReason:
    """Join two streams, or return why the results depend on an unknown order.

    `left` and `right`: the records captured before the join's stores; the left side's
    records come from `topics`. A result has the partition and the offset of its left record, and a
    topic that is called after the join and that record's.
    """
    pairs = _pair_records(rule.window, left, right)
    doubtful = pairs.where(~f.col("certain")).count()
    if doubtful:
        return (
            f"{doubtful} pairs of records have met or missed each other by the order in which the "
            "two streams were read, which the inputs don't tell: a record is forgotten when its "
            f"own stream is {_compute_retention_ms(rule.window)} ms past it (before, after and "
            "grace)"
        )
    this, other = stores
    prefix = f"{STEP_PREFIX}{rule.step}:"
    work = rule, this.key, this.value, other.value
    named = pairs.withColumn("topic", f.concat(f.lit(prefix), strip_join_prefix(f.col("topic"))))
    sources = [create_known_results_source(prefix + topic, this.key, pickle) for topic in topics]
    rows = map_on_executors(named.select(*_PAIR_COLUMNS), _join_pairs, work, READ)
    return JoinedStream(sources, rows)


def strip_join_prefix(topic: Column) -> Column:
    """Strip the prefix `step:JOIN:` from the topic names that results of joins have."""
    return f.regexp_replace(topic, "^.*:.*:", "")


def _compute_retention_ms(window: JoinWindow) -> int:
    """Return how long the window stores of a join keep records."""
    return window.size_ms + window.grace_ms


def _pair_records(window: JoinWindow, left: DataFrame, right: DataFrame) -> DataFrame:
    """Pair records of equal keys that are within the join window, in any order of arrival.

    `certain`: whether the two have met in every order.
    """
    before, after = window.before_ms, window.after_ms
    # Times are put into buckets at least as wide as a window: only those of one are compared.
    older, newer = max(before, 0), max(after, 0)
    width = older + newer + 1
    time = f.col("timestamp")
    first = f.floor(f.greatest(time - older, f.lit(0)) / width)
    last = f.floor((time + newer) / width)
    lefts = _mark_retained(left, window).select(
        "key",
        f.col("value").alias("left"),
        "topic",
        "partition",
        "offset",
        f.col("timestamp").alias("left_ms"),
        f.col("kept").alias("left_kept"),
        f.explode(f.sequence(first, last)).alias("bucket"),
    )
    rights = _mark_retained(right, window).select(
        "key",
        f.col("value").alias("right"),
        "partition",
        f.col("timestamp").alias("right_ms"),
        f.col("kept").alias("right_kept"),
        f.floor(time / width).alias("bucket"),
    )
    left_ms, right_ms = f.col("left_ms"), f.col("right_ms")
    # Near 0 the two sides may not agree, since neither looks for times below 0.
    seen = right_ms.between(_clamp_at_zero(left_ms - before), _clamp_at_zero(left_ms + after))
    seen_from_right = left_ms.between(
        _clamp_at_zero(right_ms - after), _clamp_at_zero(right_ms + before)
    )
    certain = seen & seen_from_right & f.col("left_kept") & f.col("right_kept")
    return (
        lefts.join(rights, ["partition", "key", "bucket"])
        .where(seen | seen_from_right)
        .withColumn("timestamp", f.greatest("left_ms", "right_ms"))
        .withColumn("certain", certain)
    )


def _mark_retained(records: DataFrame, window: JoinWindow) -> DataFrame:
    """Add the column `kept`: whether a record is still in its store after all others have come."""
    records = records.where(f.col("value").isNotNull())
    latest = f.max("timestamp").over(Window.partitionBy("partition"))
    return records.withColumn("kept", f.col("timestamp") > latest - _compute_retention_ms(window))


def _clamp_at_zero(time: Column) -> Column:
    """Replace negative times by 0."""
    return f.greatest(time, f.lit(0))


def _join_pairs(work: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Apply the user's joiner to each pair, and yield the results, pickled, as rows of READ."""
    rule, key_serde, left_serde, right_serde = work
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in _PAIR_COLUMNS)
        output_rows: list[OutputRow] = []
        for key, left, right, *position in zip(*columns, strict=True):
            result = _apply_joiner(
                rule,
                key_serde.deserialize(key),
                left_serde.deserialize(left),
                right_serde.deserialize(right),
            )
            output_rows.append(
                (key, None if result is None else pickle_or_cloudpickle(result), *position)
            )
        yield from drain_into_batches(output_rows, READ)


def _apply_joiner(rule: StreamJoinRule, key: Any, left: Any, right: Any) -> Any:
    """Call the user's joiner for a pair of values. Raises StreamsError if it fails."""
    try:
        return rule.joiner(key, left, right)
    except Exception as error:
        raise StreamsError(
            f"step {rule.step!r} can't join {left!r:.200} with {right!r:.200} of key "
            f"{key!r:.200} in Spark: {error!r}"
        ) from error
