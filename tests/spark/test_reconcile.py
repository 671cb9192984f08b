"""Test reconciling a word count: it agrees as it is, and each planted error is named."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console

from streams.spark import reconcile
from streams.spark.reconciliation.inputs import Inputs
from streams.spark.reconciliation.report import Report
from tests.brokers import Broker
from tests.spark.counting import LINES, Counting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def counted(inputs: Inputs) -> DataFrame:
    """Compute the batch answer, as a user writes it."""
    words = inputs.select(F.explode(F.split("value", " ")).alias("key"))
    answer: DataFrame = words.groupBy("key").agg(F.count("*").alias("value"))
    return answer


@pytest.fixture
def counting(
    broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> Callable[..., Counting]:
    def make(**settings: Any) -> Counting:
        made = Counting(broker.bootstrap_servers, unique("words"), tmp_path / "state", **settings)
        made.feed(*LINES)
        return made

    return make


def off(report: Report) -> set[tuple[str, str, str]]:
    """Return account, verdict and key of what differs."""
    return {(row.account, row.verdict, row.key) for row in report.some_off(100)}


def test_a_word_count_balances_and_each_planted_error_is_named(
    spark: SparkSession, counting: Callable[..., Counting], tmp_path: Path
) -> None:
    """Change a record of a changelog, double an output and skip an offset of one application.

    Each of the three happens to another word.
    """
    word_count = counting()
    cut = word_count.run()
    with reconcile(spark, word_count.app, expected=counted, cut=cut) as report:
        assert report.balanced, report.summary()
        assert report.in_flight_count == 0
        words = {word for line in LINES for word in line.split()}
        assert {row.key for row in report.accounts["counts"].ok.collect()} == words
        (turns,) = report.accounts[word_count.out].ok.where("key = 'turns'").collect()
        assert (turns.expected, turns.found) == (3, 3)

    changed = word_count.last(word_count.changelog, "mill")
    planted = word_count.change_state("mill", 1, changed.partition())
    was = word_count.last(word_count.out, "and")
    doubled = word_count.write(
        word_count.out, b"and", was.value(), was.partition(), at_ms=was.timestamp()[1]
    )
    skipped = word_count.end_of(word_count.lines, 0)
    word_count.feed("skipped words", "a line", *["the end"] * 2)
    word_count.skip(0, skipped)
    cut = word_count.run()

    with reconcile(spark, word_count.app, expected=counted, cut=cut) as report:
        assert not report.balanced
        assert off(report) == {
            ("counts", "different", "mill"),
            (word_count.out, "unexpected", "and"),
            *(
                (name, "missing", word)
                for name in ("counts", word_count.out)
                for word in ("skipped",)
            ),
            *(
                (name, "missing", word)
                for name in ("counts", word_count.out)
                for word in ("words",)
            ),
        }
        (mill,) = report.accounts["counts"].different.collect()
        assert (mill.key, mill.expected, mill.found) == ("mill", 2, 1)
        state = [at for at in mill.offsets if at.role == "state"]
        assert [(at.topic, at.partition, at.offset) for at in state] == [
            (word_count.changelog, changed.partition(), planted)
        ]
        assert {at.topic for at in mill.offsets if at.role == "input"} == {word_count.repartition}
        (twice,) = report.unexpected.collect()
        written = [at.offset for at in twice.offsets if at.role == "output"]
        assert written == [was.offset(), doubled]
        assert twice.why == "repeats the record before it"
        assert "counts: different 'mill': expected 2, found 1" in shown(report)
        report.to_html(tmp_path / "report.html")
        html = (tmp_path / "report.html").read_text()
        assert "are NOT as expected" in html
        assert f"{word_count.changelog}[{changed.partition()}]@{planted}" in html

    with reconcile(spark, word_count.app, cut=cut) as report:
        assert off(report) == {
            ("counts", "different", "mill"),
            (word_count.out, "unexpected", "and"),
            (word_count.repartition, "missing", "skipped"),
            (word_count.repartition, "missing", "words"),
        }
        for row in report.missing.collect():
            assert [(at.topic, at.partition, at.offset, at.role) for at in row.offsets] == [
                (word_count.lines, 0, skipped, "input")
            ]
        (mill,) = report.accounts["counts"].different.collect()
        assert mill.inputs == 2
        assert {at.topic for at in mill.offsets if at.role == "input"} == {word_count.repartition}


def shown(report: Report) -> str:
    told = io.StringIO()
    report.show(Console(file=told, width=400))
    return told.getvalue()
