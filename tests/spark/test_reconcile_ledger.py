"""Test reconciling a running application by its ledger, and what at_least_once leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streams.errors import ConfigError
from streams.spark import read_cut, reconcile
from streams.spark.cuts.cut import Cut
from streams.spark.reconciliation.comparing import RowVerdict
from streams.spark.reconciliation.report import Report
from tests.brokers import Broker
from tests.processes import wait_until
from tests.spark.counting import LINES, Counting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(1, by="test")

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
    word_count = Counting(broker.bootstrap_servers, unique("fed"), tmp_path / "state", ledger=True)
    with word_count.app.start(), word_count.being_fed():
        cut: list[Cut] = []

        def is_amid() -> bool:
            try:
                cut[:] = [read_cut(word_count.app)]
            except ConfigError:  # nothing is committed yet
                return False
            return all(at > 20 for at in cut[0].offsets.values())

        wait_until(is_amid, what="it to be amid its lines")
        with reconcile(spark, word_count.app, cut=cut[0]) as report:
            assert report.balanced, report.summary()
            assert report.accounts.keys() == {"counts", word_count.out, word_count.repartition}
            assert report.refused == ()
    copied = word_count.last(word_count.out, "and")
    out = word_count.write(
        word_count.out, b"and", copied.value(), copied.partition(), copied.timestamp()[1]
    )
    again = word_count.last(word_count.repartition, "race")
    between = word_count.write(
        word_count.repartition, b"race", again.value(), again.partition(), again.timestamp()[1]
    )
    word_count.feed(*LINES)
    cut = [word_count.run()]
    with reconcile(spark, word_count.app, cut=cut[0]) as report:
        assert off(report) == {
            (word_count.out, "unexpected", "and", FOREIGN),
            (word_count.repartition, "unexpected", "race", FOREIGN),
        }
        assert places(report, word_count.out) == {(copied.partition(), out)}
        assert places(report, word_count.repartition) == {(again.partition(), between)}


def test_what_was_processed_twice_is_named_by_its_offsets(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    name = unique("twice")
    word_count = Counting(
        broker.bootstrap_servers, name, tmp_path / "state", processing_guarantee="at_least_once"
    )
    word_count.feed(*LINES)
    word_count.run()
    ends = {number: word_count.end_of(word_count.repartition, number) for number in range(2)}
    word_count.read_again(1, 1)  # the last line: turns and turns
    cut = word_count.run()
    with reconcile(spark, word_count.app, cut=cut) as report:
        assert {row[:3] for row in off(report)} == {
            (word_count.repartition, "unexpected", word) for word in ("turns", "and")
        }
        assert report.accounts[word_count.repartition].counts[RowVerdict.UNEXPECTED] == 3
        named = places(report, word_count.repartition)
        written = {
            (number, at)
            for number, end in ends.items()
            for at in range(end, word_count.end_of(word_count.repartition, number))
        }
        assert written <= named
