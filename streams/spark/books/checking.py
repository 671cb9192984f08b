"""Check an account: compare its rows, find repeated records and records not in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from streams.errors import ConfigError
from streams.spark.books.accounts import Account, Kind
from streams.spark.books.comparing import BY, Reading, Verdict, compare, doubled
from streams.spark.books.encoded import text_of
from streams.spark.books.found import Place
from streams.spark.books.report import Checked
from streams.spark.stores.store_options import layout_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REPEATS = "repeats the record before it"


def check(
    place: Place,
    account: Account,
    found: DataFrame,
    *,
    tolerance: float = 0.0,
    ledger: DataFrame | None = None,
) -> Checked:
    """Compare an account with the rows that are there, and count the records of each verdict.

    `actual_rows` has the columns of ROW and FOUND; `ledger_verdicts` are rows of
    `LedgerRuns.check_records`.

    Raises: ConfigError if a row of a table was expected twice.
    """
    reading = Reading(place.value, tolerance)
    if ledger is not None:
        ledger = ledger.persist(StorageLevel.MEMORY_AND_DISK)
        if account.kind is not Kind.STORE:  # in a store such a record is part of the state
            found = _but_strays(found, ledger)
    compared = compare(
        account.expected,
        found,
        account.kind,
        reading,
        times=account.times,
        scattered=place.scattered,
    )
    if account.expired is not None:
        compared = _but_expired(compared, account.expired)
    if account.kind is Kind.UPSERTS:
        certain = place.grows and ledger is None
        compared = _joined(compared, _doubled(found, certain=certain))
    if ledger is not None:
        compared = _joined(compared, ledger)
    compared = compared.persist(StorageLevel.MEMORY_AND_DISK)
    counts: dict[Verdict, int] = {}
    rows_max = 1
    totals = compared.groupBy("verdict").agg(
        F.sum("count").alias("records"), F.max("expected_rows").alias("rows")
    )
    for row in totals.collect():
        counts[Verdict(row.verdict)] = row.records
        rows_max = max(rows_max, row.rows)
    if ledger is not None:
        ledger.unpersist()
    if rows_max > 1:
        error = _twice(place, compared)
        compared.unpersist()
        raise error
    return Checked(place, account, counts, compared)


def _but_strays(found: DataFrame, ledger: DataFrame) -> DataFrame:
    """Exclude the records that no ledger entry names, which have the ledger's verdict."""
    is_unledgered = F.col("verdict") == Verdict.UNEXPECTED.value
    unledgered = ledger.where(is_unledgered).select(F.inline("positions"))
    return found.join(F.broadcast(unledgered), ["topic", "partition", "offset"], "left_anti")


def let_go(
    expected: DataFrame, found: DataFrame, place: Place, partition_count: int
) -> DataFrame | None:
    """Select those of the expected windows that a store may have dropped as expired.

    Each is judged by the time of its key's own partition, which is the latest of that partition's
    rows in `actual_rows`. Which partition a key belongs to is known by its rows there. For a key
    without any the partition decides that is furthest behind; one of the `partition_count`
    partitions that has no rows has dropped nothing.

    Returns None for what is no windowed store, or has no rows.
    """
    if place.spec is None or place.windowed is None:
        return None
    time = "window_end" if place.windowed == "session" else "window_start"
    by_partition = found.groupBy("partition").agg(F.max(time).alias("latest"))
    latest = {row.partition: row.latest for row in by_partition.collect()}
    if not latest:
        return None
    furthest_behind = min(latest.values()) if len(latest) >= partition_count else None
    its_latest = F.create_map(*(F.lit(each) for pair in latest.items() for each in pair))
    of_keys = found.groupBy("key").agg(F.min(its_latest[F.col("partition")]).alias("latest"))
    stream_time = F.coalesce("latest", F.lit(furthest_behind).cast("BIGINT"))
    kept_ms = int(layout_of(place.spec)["retention_ms"])
    return expected.join(of_keys, "key", "left").where(F.col(time) <= stream_time - F.lit(kept_ms))


def _but_expired(compared: DataFrame, expired: DataFrame) -> DataFrame:
    """Exclude missing rows that the store may have dropped as expired."""
    expired_keys = expired.select(*(F.col(name).alias(f"gone_{name}") for name in BY)).distinct()
    condition = F.col("verdict") == Verdict.MISSING.value
    for name in BY:
        condition &= F.col(name).eqNullSafe(F.col(f"gone_{name}"))
    return compared.join(expired_keys, condition, "left_anti")


def _doubled(found: DataFrame, *, certain: bool) -> DataFrame:
    """Build a verdict for each record that repeats the one before it.

    It is `unexpected` if that must be a mistake, and otherwise `doubled`, which is no error.
    """
    verdict = Verdict.UNEXPECTED if certain else Verdict.DOUBLED
    return doubled(found).select(
        F.lit(verdict.value).alias("verdict"),
        *BY,
        F.lit(None).cast("BINARY").alias("expected"),
        "found",
        F.lit(None).cast("BIGINT").alias("expected_ms"),
        F.lit(None).cast("BIGINT").alias("found_ms"),
        F.lit(1).cast("BIGINT").alias("count"),
        "positions",
        F.lit(_REPEATS).alias("why"),
    )


def _joined(compared: DataFrame, more: DataFrame) -> DataFrame:
    """Append the rows of further verdicts to those of a comparison."""
    return compared.unionByName(more.withColumn("expected_rows", F.lit(1).cast("BIGINT")))


def _twice(place: Place, compared: DataFrame) -> ConfigError:
    """Create the error that names a key which is expected more than once."""
    key = text_of(F.col("key"), place.key).alias("key")
    (row,) = compared.where("expected_rows > 1").limit(1).select(key).collect()
    return ConfigError(
        f"what is expected of {place.name!r} has {row.key!r} more than once: a table has one row "
        "for each key (and window)"
    )
