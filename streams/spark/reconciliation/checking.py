"""Check a reconciled store or topic: compare rows, find repeated and unledgered records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from streams.errors import ConfigError
from streams.spark.reconciliation.accounts import KEY_COLUMNS, Account, AccountKind
from streams.spark.reconciliation.comparing import (
    RowVerdict,
    ValueComparison,
    build_verdict_rows,
    compare_rows,
    find_repeated_records,
)
from streams.spark.reconciliation.result import CheckedAccount
from streams.spark.reconciliation.serde_columns import to_text_column
from streams.spark.reconciliation.targets import ReconciliationTarget
from streams.spark.stores.store_options import build_layout_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REPEATS = "repeats the record before it"


def check_account(
    target: ReconciliationTarget,
    account: Account,
    actual_rows: DataFrame,
    *,
    tolerance: float = 0.0,
    ledger_verdicts: DataFrame | None = None,
) -> CheckedAccount:
    """Compare a store's or topic's expected rows with the actual ones; count the row verdicts.

    `actual_rows` has the columns of ROW and FOUND; `ledger_verdicts` are rows of
    `LedgerRuns.compare_records`.

    Raises: ConfigError if a row of a table was expected twice.
    """
    reading = ValueComparison(target.value_serde, tolerance)
    if ledger_verdicts is not None:
        ledger_verdicts = ledger_verdicts.persist(StorageLevel.MEMORY_AND_DISK)
        if account.kind is not AccountKind.STORE:  # in a store such a record is part of the state
            actual_rows = _exclude_unledgered_records(actual_rows, ledger_verdicts)
    compared = compare_rows(
        account.expected,
        actual_rows,
        account.kind,
        reading,
        compares_timestamps=account.compares_timestamps,
        keys_span_partitions=target.keys_span_partitions,
    )
    if account.expired_rows is not None:
        compared = _exclude_expired_rows(compared, account.expired_rows)
    if account.kind is AccountKind.UPSERTS:
        certain = target.values_never_repeat and ledger_verdicts is None
        # A record that repeats its key's previous one is no error where that need be no mistake.
        repeats = build_verdict_rows(
            find_repeated_records(actual_rows),
            RowVerdict.UNEXPECTED if certain else RowVerdict.DOUBLED,
            why=F.lit(_REPEATS),
        )
        compared = compared.unionByName(repeats)
    if ledger_verdicts is not None:
        compared = compared.unionByName(ledger_verdicts)
    compared = compared.persist(StorageLevel.MEMORY_AND_DISK)
    counts: dict[RowVerdict, int] = {}
    rows_max = 1
    totals = compared.groupBy("verdict").agg(
        F.sum("count").alias("records"), F.max("expected_rows").alias("rows")
    )
    for row in totals.collect():
        counts[RowVerdict(row.verdict)] = row.records
        rows_max = max(rows_max, row.rows)
    if ledger_verdicts is not None:
        ledger_verdicts.unpersist()
    if rows_max > 1:
        error = _create_duplicate_key_error(target, compared)
        compared.unpersist()
        raise error
    return CheckedAccount(target, account, counts, compared)


def _exclude_unledgered_records(actual_rows: DataFrame, ledger_verdicts: DataFrame) -> DataFrame:
    """Exclude the records that no ledger entry names, since the ledger has judged them already."""
    is_unledgered = F.col("verdict") == RowVerdict.UNEXPECTED.value
    unledgered = ledger_verdicts.where(is_unledgered).select(F.inline("positions"))
    return actual_rows.join(F.broadcast(unledgered), ["topic", "partition", "offset"], "left_anti")


def select_expired_rows(
    expected_rows: DataFrame,
    actual_rows: DataFrame,
    target: ReconciliationTarget,
    partition_count: int,
) -> DataFrame | None:
    """Select the expected windows that a store may already have dropped as expired.

    Each is judged by the time of its key's own partition, which is the latest of that partition's
    rows in `actual_rows`. Which partition a key belongs to is known by its rows there. For a key
    without any the partition decides that is furthest behind; one of the `partition_count`
    partitions that has no rows has dropped nothing.

    Returns None for what is no windowed store, or has no rows.
    """
    if target.spec is None or target.windowed is None:
        return None
    time = "window_end" if target.windowed == "session" else "window_start"
    by_partition = actual_rows.groupBy("partition").agg(F.max(time).alias("latest"))
    latest = {row.partition: row.latest for row in by_partition.collect()}
    if not latest:
        return None
    furthest_behind = min(latest.values()) if len(latest) >= partition_count else None
    its_latest = F.create_map(*(F.lit(each) for pair in latest.items() for each in pair))
    of_keys = actual_rows.groupBy("key").agg(F.min(its_latest[F.col("partition")]).alias("latest"))
    stream_time = F.coalesce("latest", F.lit(furthest_behind).cast("BIGINT"))
    kept_ms = int(build_layout_options(target.spec)["retention_ms"])
    return expected_rows.join(of_keys, "key", "left").where(
        F.col(time) <= stream_time - F.lit(kept_ms)
    )


def _exclude_expired_rows(compared: DataFrame, expired_rows: DataFrame) -> DataFrame:
    """Exclude from a comparison the missing rows that the store may have dropped as expired."""
    expired_keys = expired_rows.select(
        *(F.col(name).alias(f"gone_{name}") for name in KEY_COLUMNS)
    ).distinct()
    condition = F.col("verdict") == RowVerdict.MISSING.value
    for name in KEY_COLUMNS:
        condition &= F.col(name).eqNullSafe(F.col(f"gone_{name}"))
    return compared.join(expired_keys, condition, "left_anti")


def _create_duplicate_key_error(target: ReconciliationTarget, compared: DataFrame) -> ConfigError:
    """Create the error that names a key for which more than one row is expected."""
    key = to_text_column(F.col("key"), target.key_serde).alias("key")
    (row,) = compared.where("expected_rows > 1").limit(1).select(key).collect()
    return ConfigError(
        f"what is expected of {target.name!r} has {row.key!r} more than once: a table has one row "
        "for each key (and window)"
    )
