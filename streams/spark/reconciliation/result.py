"""Define the result of a reconciliation: rows, their verdicts (missing, ...) and positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from streams.spark.cuts.cut import Cut
from streams.spark.reconciliation.accounts import (
    KEY_COLUMNS,
    Account,
    AccountKind,
    RefusedCheck,
)
from streams.spark.reconciliation.comparing import OFF_VERDICTS, POSITIONS_MAX, RowVerdict
from streams.spark.reconciliation.coverage import Coverage
from streams.spark.reconciliation.serde_columns import to_number_or_text_column, to_text_column
from streams.spark.reconciliation.targets import ReconciliationTarget
from streams.spark.serdes.times import SPARK_MS_MAX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from streams.serdes import Serde
    from streams.spark.reconciliation.dead_letters import DeadLetterCount

REPORT_COLUMNS = (
    "account STRING, kind STRING, key STRING, window_start TIMESTAMP, window_end TIMESTAMP, "
    "expected STRING, found STRING, count BIGINT, why STRING, inputs BIGINT, "
    "offsets ARRAY<STRUCT<topic: STRING, partition: INT, offset: BIGINT, role: STRING>>"
)
"""The columns of the report's DataFrames."""
_OF = "of_"
"""What the names of a row's columns begin with beside those of its origins."""


class VerdictRows:
    """Gives each verdict's rows a name, for what can select the rows of a verdict."""

    __slots__ = ()

    def select_rows(self, verdict: RowVerdict) -> DataFrame:
        """Select the rows that have a verdict."""
        raise NotImplementedError

    @property
    def ok(self) -> DataFrame:
        """Return the rows that are as expected."""
        return self.select_rows(RowVerdict.OK)

    @property
    def missing(self) -> DataFrame:
        """Return the rows that are expected and not there."""
        return self.select_rows(RowVerdict.MISSING)

    @property
    def unexpected(self) -> DataFrame:
        """Return the rows that are there and not expected."""
        return self.select_rows(RowVerdict.UNEXPECTED)

    @property
    def different(self) -> DataFrame:
        """Return the rows that are there with another value than expected."""
        return self.select_rows(RowVerdict.DIFFERENT)

    @property
    def doubled(self) -> DataFrame:
        """Return the records of a table's topic that repeat their key's previous record.

        They may be right, and are no error. Where they can only be a mistake they are `unexpected`
        instead.
        """
        return self.select_rows(RowVerdict.DOUBLED)


@dataclass(frozen=True, slots=True)
class CheckedAccount(VerdictRows):
    """Represents a checked store or topic: its rows, and a record count per row verdict.

    Its DataFrames have the columns of the report's, but `account` and `kind`, with keys and values
    of Spark's own types where the serdes are plain.
    """

    target: ReconciliationTarget
    account: Account
    counts: Mapping[RowVerdict, int]
    compared: DataFrame

    @property
    def name(self) -> str:
        """Return the name of the store or topic."""
        return self.target.name

    @property
    def kind(self) -> AccountKind:
        """Return the kind of the store or topic."""
        return self.target.kind

    @property
    def balanced(self) -> bool:
        """Return whether no record is missing, unexpected or different."""
        return not any(self.counts.get(verdict, 0) for verdict in OFF_VERDICTS)

    def select_rows(self, verdict: RowVerdict) -> DataFrame:
        """Select the rows of a verdict, with keys and values converted to Spark's own types."""
        return self._select_rows_with_positions([verdict]).select(
            *self._list_columns(to_number_or_text_column)
        )

    def select_text_rows(self, *verdicts: RowVerdict) -> DataFrame:
        """Select the rows that have one of these verdicts, as text, with a column `verdict`."""
        place = self.target
        return self._select_rows_with_positions(list(verdicts)).select(
            "verdict",
            F.lit(place.name).alias("account"),
            F.lit(place.kind.value).alias("kind"),
            *self._list_columns(to_text_column),
        )

    def _list_columns(self, convert: Callable[[Column, Serde[Any]], Column]) -> list[Column]:
        """List the columns of the report, with keys and values as `convert` makes them."""
        key, value = self.target.key_serde, self.target.value_serde
        return [
            convert(F.col("key"), key).alias("key"),
            *(F.col(name) for name in ("window_start", "window_end")),
            *(convert(F.col(name), value).alias(name) for name in ("expected", "found")),
            *(F.col(name) for name in ("count", "why", "inputs", "offsets")),
        ]

    def _select_rows_with_positions(self, verdicts: list[RowVerdict]) -> DataFrame:
        """Select the rows that have these verdicts, with positions, and keys and values as bytes.

        The rows that are off have the positions of the inputs that went into them, where these are
        known.
        """
        role = "state" if self.target.kind is AccountKind.STORE else "output"
        rows = self.compared.where(F.col("verdict").isin([each.value for each in verdicts]))
        own_positions = F.transform("positions", lambda at: _build_position(at, role))
        no_inputs = F.lit(None).cast("BIGINT").alias("inputs")
        if RowVerdict.OK in verdicts or self.account.origins is None:
            located = rows.select("*", own_positions.alias("offsets"), no_inputs)
        else:
            origins = _collect_origins(self.account.origins, rows)
            all_positions = F.concat(F.coalesce("origins", F.array()), own_positions)
            is_of_row = reduce(
                Column.__and__,
                (
                    F.col(name).eqNullSafe(F.col(_OF + name))
                    for name in rows.columns
                    if _OF + name in origins.columns
                ),
            )
            located = rows.join(origins, is_of_row, "left").select(
                *rows.columns, all_positions.alias("offsets"), "inputs"
            )
        return located.withColumns(
            {name: _to_timestamp(name) for name in ("window_start", "window_end")}
        )


def _collect_origins(origins: DataFrame, rows: DataFrame) -> DataFrame:
    """Collect for each of `rows` the input records that went into it.

    Rows and origins go together by key and, where the origins have them, by window, value and
    timestamp. A row of which nothing was expected has no such value: it gets those of its key and
    window.

    Returns the columns of rows that matter, prefixed; `inputs` (how many records went in);
    `origins` (the first of them).
    """
    names = [name for name in KEY_COLUMNS if name in origins.columns]
    is_origin = reduce(
        Column.__and__, (F.col(_OF + name).eqNullSafe(F.col(name)) for name in names)
    )
    if "value" in origins.columns:
        expected, expected_ms = F.col(_OF + "expected"), F.col(_OF + "expected_ms")
        is_result = (expected == F.col("value")) & (expected_ms == F.col("timestamp"))
        is_origin &= expected.isNull() | is_result
        names += ["expected", "expected_ms"]
    of_row = [_OF + name for name in names]
    wanted = rows.select(*(F.col(name).alias(_OF + name) for name in names)).distinct()
    # A record that went into several rows of a key is one input of it.
    found = (
        wanted.join(origins, is_origin).select(*of_row, "topic", "partition", "offset").distinct()
    )
    by_row = Window.partitionBy(*of_row)
    numbered = found.select(
        "*",
        F.row_number().over(by_row.orderBy("topic", "partition", "offset")).alias("number"),
        F.count(F.lit(1)).over(by_row).alias("inputs"),
    )
    position = F.struct("topic", "partition", "offset", F.lit("input").alias("role"))
    return (
        numbered.where(F.col("number") <= POSITIONS_MAX)
        .groupBy(*of_row)
        .agg(
            F.first("inputs").alias("inputs"),
            F.sort_array(F.collect_list(position)).alias("origins"),
        )
    )


def _build_position(position: Column, role: str) -> Column:
    """Build the struct of a position and its role: input, state or output."""
    return F.struct(
        position["topic"].alias("topic"),
        position["partition"].alias("partition"),
        position["offset"].alias("offset"),
        F.lit(role).alias("role"),
    )


def _to_timestamp(column_name: str) -> Column:
    """Convert a column of ms since 1970 to TIMESTAMP.

    A time that Spark doesn't have, as the end of a window that never closes, is null.
    """
    at = F.col(column_name)
    return F.when(at <= SPARK_MS_MAX, F.timestamp_millis(at))


@dataclass(frozen=True, kw_only=True)
class ReconciliationResult(VerdictRows):
    """Represents the result of reconciling an application at a consistent cut.

    `coverage`: how much of what was asked for was checked; `accounts`: what was, by name;
    `refused`: what could not be. `in_flight`: the records in transit between sub-topologies at the
    cut (topic, partition, offset; key as bytes), None where that is not known.
    """

    application_id: str
    cut: Cut
    spark: SparkSession = field(repr=False)
    accounts: Mapping[str, CheckedAccount]
    coverage: Coverage
    refused: tuple[RefusedCheck, ...] = ()
    in_flight: DataFrame | None = None
    in_flight_count: int | None = None
    dead_letters: tuple[DeadLetterCount, ...] = ()
    """How many dead letters the application has set aside, in each topic."""
    inputs: Mapping[str, int] = field(default_factory=dict)
    """Offsets of each input topic that are in the cut."""
    release_inputs: Callable[[], None] | None = field(default=None, repr=False)
    """Releases the inputs that Spark stores, from which the rows' positions are found."""

    @property
    def balanced(self) -> bool:
        """Return whether all that was asked for was checked and is as expected.

        What is allowed to go unchecked is left out. True is status 0 of `millrace reconcile`.
        """
        return bool(self.accounts) and not self.unchecked and not self.is_off

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Return the names of stores and topics that were neither checked nor allowed unchecked."""
        return self.coverage.refused

    @property
    def is_off(self) -> bool:
        """Return whether something that was checked is missing, unexpected or different."""
        return not all(each.balanced for each in self.accounts.values())

    def select_rows(self, verdict: RowVerdict) -> DataFrame:
        """Select the rows of a verdict from the accounts that were checked, as text.

        They say nothing of the accounts that were not checked: the verdict is `balanced`.
        """
        return self._union_text_rows(verdict).drop("verdict")

    @property
    def off(self) -> DataFrame:
        """Return all rows that are missing, unexpected or different, with the `verdict`."""
        return self._union_text_rows(*OFF_VERDICTS)

    def count(self, verdict: RowVerdict) -> int:
        """Count the records of all stores and topics that have this verdict (missing, ...)."""
        return sum(each.counts.get(verdict, 0) for each in self.accounts.values())

    def some_off(self, rows_max: int) -> list[Row]:
        """Collect at most `rows_max` of the rows that are off, the same ones each time.

        Windows are texts: Python has no datetime after the year 9999.
        """
        by = ("account", "verdict", "key", "window_start")
        windows = {name: F.col(name).cast("STRING") for name in ("window_start", "window_end")}
        some = self.off.orderBy(*by).limit(rows_max).withColumns(windows)
        return some.collect() if self.is_off else []

    def write(self, directory: Path) -> None:
        """Write rows as Parquet, in a directory for each row verdict (`missing`, ...)."""
        for verdict in RowVerdict:
            rows = self.select_rows(verdict)
            rows.write.mode("overwrite").parquet(str(directory / verdict.value))

    def unpersist(self) -> None:
        """Release the rows and the inputs that Spark stores for the report's DataFrames."""
        for each in self.accounts.values():
            each.compared.unpersist()
        if self.release_inputs is not None:
            self.release_inputs()

    def _union_text_rows(self, *verdicts: RowVerdict) -> DataFrame:
        """Select the rows of these verdicts from all stores and topics, as text."""
        parts = [
            each.select_text_rows(*verdicts)
            for each in self.accounts.values()
            if any(each.counts.get(verdict, 0) for verdict in verdicts)
        ]
        if not parts:
            return self.spark.createDataFrame([], f"verdict STRING, {REPORT_COLUMNS}")
        return reduce(lambda one, other: one.unionByName(other), parts)
