"""Test reconciling a running application by its ledger, and what at_least_once leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from streams.errors import ConfigError
from streams.spark import read_cut, reconcile
from streams.spark.cuts.cut import Cut
from streams.spark.reconciliation.comparing import RowVerdict
from streams.spark.reconciliation.report import Report
from tests.brokers import Broker
from tests.processes import wait_until
from tests.spark.books import LINES, Counting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOREIGN = "in no entry of the ledger"


def off(report: Report) -> set[tuple[str, str, str, str | None]]:
    return {(row.account, row.verdict, row.key, row.why) for row in report.some_off(100)}


def places(report: Report, account: str) -> set[tuple[int, int]]:
    """Return partition and offset of the records that are named of an account."""
    rows = report.off.where(f"account = '{account}'").collect()
    return {(at.partition, at.offset) for row in rows for at in row.offsets if at.role == "output"}


def test_while_it_runs_all_balances_and_a_foreign_record_is_named(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    books = Counting(broker.bootstrap_servers, unique("fed"), tmp_path / "state", ledger=True)
    with books.app.start(), books.being_fed():
        cut: list[Cut] = []

        def is_amid() -> bool:
            try:
                cut[:] = [read_cut(books.app)]
            except ConfigError:  # nothing is committed yet
                return False
            return all(at > 20 for at in cut[0].offsets.values())

        wait_until(is_amid, what="it to be amid its lines")
        with reconcile(spark, books.app, cut=cut[0]) as report:
            assert report.balanced, report.summary()
            assert report.accounts.keys() == {"counts", books.out, books.repartition}
            assert report.refused == ()
    copied = books.last(books.out, "and")
    out = books.write(books.out, b"and", copied.value(), copied.partition(), copied.timestamp()[1])
    again = books.last(books.repartition, "race")
    between = books.write(
        books.repartition, b"race", again.value(), again.partition(), again.timestamp()[1]
    )
    books.feed(*LINES)
    cut = [books.run()]
    with reconcile(spark, books.app, cut=cut[0]) as report:
        assert off(report) == {
            (books.out, "unexpected", "and", FOREIGN),
            (books.repartition, "unexpected", "race", FOREIGN),
        }
        assert places(report, books.out) == {(copied.partition(), out)}
        assert places(report, books.repartition) == {(again.partition(), between)}


def test_what_was_processed_twice_is_named_by_its_offsets(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    name = unique("twice")
    books = Counting(
        broker.bootstrap_servers, name, tmp_path / "state", processing_guarantee="at_least_once"
    )
    books.feed(*LINES)
    books.run()
    ends = {number: books.end_of(books.repartition, number) for number in range(2)}
    books.read_again(1, 1)  # the last line: turns and turns
    cut = books.run()
    with reconcile(spark, books.app, cut=cut) as report:
        assert {row[:3] for row in off(report)} == {
            (books.repartition, "unexpected", word) for word in ("turns", "and")
        }
        assert report.accounts[books.repartition].counts[RowVerdict.UNEXPECTED] == 3
        named = places(report, books.repartition)
        written = {
            (number, at)
            for number, end in ends.items()
            for at in range(end, books.end_of(books.repartition, number))
        }
        assert written <= named
