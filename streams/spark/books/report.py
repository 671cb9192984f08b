"""Define the report of a reconciliation: the verdicts, the rows, and where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from streams.spark.books.accounts import Account, Kind
from streams.spark.books.comparing import OFF, POSITIONS_MAX, Verdict
from streams.spark.books.coverage import Coverage
from streams.spark.books.encoded import text_of, typed_of
from streams.spark.books.found import Place
from streams.spark.cuts.cut import Cut

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession
    from rich.console import Console

ROWS = (
    "account STRING, kind STRING, key STRING, window_start TIMESTAMP, window_end TIMESTAMP, "
    "expected STRING, found STRING, count BIGINT, why STRING, inputs BIGINT, "
    "offsets ARRAY<STRUCT<topic: STRING, partition: INT, offset: BIGINT, role: STRING>>"
)
"""The columns of the report's DataFrames."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Represents something that was not checked, with the reason.

    `name`: of a store, a topic or a step.
    """

    name: str
    subtopology: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Checked:
    """Represents a checked account with its rows and the number of records of each verdict.

    Its DataFrames have the columns of the report's, but `account` and `kind`, with keys and values
    of Spark's own types where the serdes are plain.
    """

    place: Place
    account: Account
    counts: Mapping[Verdict, int]
    compared: DataFrame

    @property
    def name(self) -> str:
        """Return the name of the store or topic."""
        return self.place.name

    @property
    def kind(self) -> Kind:
        """Return the kind of the account."""
        return self.place.kind

    @property
    def balanced(self) -> bool:
        """Whether no record is missing, unexpected or different."""
        return not any(self.counts.get(verdict, 0) for verdict in OFF)

    @property
    def ok(self) -> DataFrame:
        """Return the rows that are as expected."""
        return self._typed(Verdict.OK)

    @property
    def missing(self) -> DataFrame:
        """Return the rows that are expected and not there."""
        return self._typed(Verdict.MISSING)

    @property
    def unexpected(self) -> DataFrame:
        """Return the rows that are there and not expected."""
        return self._typed(Verdict.UNEXPECTED)

    @property
    def different(self) -> DataFrame:
        """Return the rows that are there with another value than expected."""
        return self._typed(Verdict.DIFFERENT)

    def _typed(self, verdict: Verdict) -> DataFrame:
        """Select the rows of a verdict, with keys and values of Spark's own types."""
        place = self.place
        return self._rows([verdict]).select(
            typed_of(F.col("key"), place.key).alias("key"),
            "window_start",
            "window_end",
            typed_of(F.col("expected"), place.value).alias("expected"),
            typed_of(F.col("found"), place.value).alias("found"),
            "count",
            "why",
            "inputs",
            "offsets",
        )

    @property
    def doubled(self) -> DataFrame:
        """Return records of a table in a topic that repeat the one before them.

        They may be right, and are no error.
        """
        return self._typed(Verdict.DOUBLED)

    def texts(self, *verdicts: Verdict) -> DataFrame:
        """Select the rows of verdicts, with the columns of the report and `verdict`."""
        place = self.place
        return self._rows(list(verdicts)).select(
            "verdict",
            F.lit(place.name).alias("account"),
            F.lit(place.kind.value).alias("kind"),
            text_of(F.col("key"), place.key).alias("key"),
            "window_start",
            "window_end",
            text_of(F.col("expected"), place.value).alias("expected"),
            text_of(F.col("found"), place.value).alias("found"),
            "count",
            "why",
            "inputs",
            "offsets",
        )

    def _rows(self, verdicts: list[Verdict]) -> DataFrame:
        """Select the rows of verdicts with their offsets; keys and values are still bytes.

        The rows that are off have the positions of the inputs that went into them, where these are
        known.
        """
        role = "state" if self.place.kind is Kind.STORE else "output"
        rows = self.compared.where(F.col("verdict").isin([each.value for each in verdicts]))
        own_positions = F.transform("positions", lambda at: _place(at, role))
        no_inputs = F.lit(None).cast("BIGINT").alias("inputs")
        rows = rows.withColumns({name: _time(name) for name in ("window_start", "window_end")})
        if Verdict.OK in verdicts or self.account.origins is None:
            return rows.select("*", own_positions.alias("offsets"), no_inputs)
        origins = self._origins(self.account.origins, rows)
        all_positions = F.concat(F.coalesce("origins", F.array()), own_positions)
        return rows.join(origins, rows["key"].eqNullSafe(origins["of"]), "left").select(
            *(rows[name] for name in rows.columns), all_positions.alias("offsets"), "inputs"
        )

    def _origins(self, origins: DataFrame, rows: DataFrame) -> DataFrame:
        """Collect for each key in `rows` the input records that went into it.

        Returns `of` (the key), `inputs` (how many records went in), `origins` (the first of them).
        """
        keys = rows.select("key").distinct()
        wanted = origins.join(keys, "key", "left_semi")
        by_key = Window.partitionBy("key")
        in_order = by_key.orderBy("topic", "partition", "offset")
        numbered = wanted.select(
            "*",
            F.row_number().over(in_order).alias("number"),
            F.count(F.lit(1)).over(by_key).alias("inputs"),
        )
        position = F.struct("topic", "partition", "offset", F.lit("input").alias("role"))
        return (
            numbered.where(F.col("number") <= POSITIONS_MAX)
            .groupBy(F.col("key").alias("of"))
            .agg(
                F.first("inputs").alias("inputs"),
                F.sort_array(F.collect_list(position)).alias("origins"),
            )
        )


def _place(at: Column, role: str) -> Column:
    """Build the struct of a position and its role: input, state or output."""
    return F.struct(
        at["topic"].alias("topic"),
        at["partition"].alias("partition"),
        at["offset"].alias("offset"),
        F.lit(role).alias("role"),
    )


def _time(name: str) -> Column:
    """Convert a column of ms to TIMESTAMP.

    A time that Spark doesn't have, as the end of a window that never closes, is null.
    """
    at = F.col(name)
    return F.when(at <= 2**53, F.timestamp_millis(at))


@dataclass(frozen=True, kw_only=True)
class Report:
    """Represents the result of reconciling an application at a cut.

    `coverage`: how much of what was asked for was checked; `accounts`: what was, by name;
    `refused`: what could not be. `in_flight`: the records in transit between sub-topologies at the
    cut (topic, partition, offset; key as bytes), None where that is not known.
    """

    application_id: str
    cut: Cut
    spark: SparkSession = field(repr=False)
    accounts: Mapping[str, Checked]
    coverage: Coverage
    refused: tuple[Refused, ...] = ()
    in_flight: DataFrame | None = None
    in_flight_count: int | None = None
    inputs: Mapping[str, int] = field(default_factory=dict)
    """Offsets of each input topic that are in the cut."""

    @property
    def balanced(self) -> bool:
        """Whether all that was asked for was checked and is as expected.

        What is allowed to go unchecked is left out. True is status 0 of `millrace reconcile`.
        """
        return bool(self.accounts) and not self.unchecked and not self.is_off

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Return the names of accounts that were not checked and not allowed to go unchecked."""
        return self.coverage.refused

    @property
    def is_off(self) -> bool:
        """Whether something that was checked is missing, unexpected or different."""
        return not all(each.balanced for each in self.accounts.values())

    @property
    def ok(self) -> DataFrame:
        """Return the rows that are as expected, of the accounts that were checked, as text.

        This is a DataFrame, which says nothing of the accounts that were not checked: the verdict
        is `balanced`.
        """
        return self._rows(Verdict.OK).drop("verdict")

    @property
    def missing(self) -> DataFrame:
        """Return the rows that are expected and not there."""
        return self._rows(Verdict.MISSING).drop("verdict")

    @property
    def unexpected(self) -> DataFrame:
        """Return the rows that are there and not expected."""
        return self._rows(Verdict.UNEXPECTED).drop("verdict")

    @property
    def different(self) -> DataFrame:
        """Return the rows that are there with another value than expected."""
        return self._rows(Verdict.DIFFERENT).drop("verdict")

    @property
    def doubled(self) -> DataFrame:
        """Return records of tables in topics that repeat the one before them.

        Where that can only be a mistake they are `unexpected` instead.
        """
        return self._rows(Verdict.DOUBLED).drop("verdict")

    @property
    def off(self) -> DataFrame:
        """Return all rows that are missing, unexpected or different, with the `verdict`."""
        return self._rows(*OFF)

    def count(self, verdict: Verdict) -> int:
        """Count the records of all accounts that have a verdict."""
        return sum(each.counts.get(verdict, 0) for each in self.accounts.values())

    def some_off(self, rows_max: int) -> list[Row]:
        """Collect at most `rows_max` of the rows that are off, the same ones each time."""
        by = ("account", "verdict", "key", "window_start")
        return self.off.orderBy(*by).limit(rows_max).collect() if self.is_off else []

    def write(self, directory: Path) -> None:
        """Write the rows of each verdict as Parquet, in a directory of the verdict's name."""
        for verdict in Verdict:
            frame = self._rows(verdict).drop("verdict")
            frame.write.mode("overwrite").parquet(str(directory / verdict.value))

    def summary(self) -> str:
        """Summarize the report for a person, in a few lines of text."""
        from streams.spark.books.showing import summary

        return summary(self)

    def show(self, console: Console | None = None) -> None:
        """Print the summary and the rows that are off."""
        from streams.spark.books.showing import show

        show(self, console)

    def to_html(self, path: Path | str) -> None:
        """Write the report to a file as an HTML page that needs no other file."""
        from streams.spark.books.page import page

        Path(path).write_text(page(self), encoding="utf-8")

    def unpersist(self) -> None:
        """Release the rows that Spark stores for the report's DataFrames."""
        for each in self.accounts.values():
            each.compared.unpersist()

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *error: object) -> None:
        self.unpersist()

    def _rows(self, *verdicts: Verdict) -> DataFrame:
        """Select the rows of verdicts from all accounts, as text."""
        parts = list(self._parts(verdicts))
        if not parts:
            return self.spark.createDataFrame([], f"verdict STRING, {ROWS}")
        return reduce(lambda one, other: one.unionByName(other), parts)

    def _parts(self, verdicts: tuple[Verdict, ...]) -> Iterator[DataFrame]:
        """Yield the rows of verdicts of each account that has some."""
        for each in self.accounts.values():
            if any(each.counts.get(verdict, 0) for verdict in verdicts):
                yield each.texts(*verdicts)
