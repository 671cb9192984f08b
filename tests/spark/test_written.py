"""Test records against the ledger: those in no entry, and those in one and not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import LedgerTransaction, WrittenRange
from streams.spark.cuts.cut import Cut
from streams.spark.reconciliation.ledger_check import LedgerRuns, entries_in_cut
from streams.spark.source.broker_access import BrokerAccess
from tests.spark.test_comparing import frames, row, there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_without_a_ledger_it_is_said_what_to_do() -> None:
    cut = Cut(application_id="app", taken_ms=0, offsets={})
    with pytest.raises(ConfigError, match=r"'app' keeps no ledger.*ledger=True"):
        entries_in_cut(BrokerAccess("127.0.0.1:1"), cut)


@pytest.mark.parametrize("whole", [True, False])
def test_a_stranger_s_record_and_a_lost_one_are_told_by_their_offsets(
    spark: SparkSession, *, whole: bool
) -> None:
    runs = {
        Partition("topic", 0): (WrittenRange(3, 4), WrittenRange(7, 9)),
        Partition("topic", 1): (WrittenRange(0, 0),),
    }
    entry = LedgerTransaction(producer_id=1, producer_epoch=0, inputs={}, written=runs)
    offsets = [(0, at) for at in (1, 3, 4, 5, 7, 9)] + [(1, 0), (1, 2)]
    _, found = frames(spark, [], [there(row("k", "v"), at, number) for number, at in offsets])
    rows = LedgerRuns(spark, [entry]).compare_records(found, "topic", is_complete=whole).collect()
    told = {(r.verdict, r.positions[0].partition, r.positions[0].offset) for r in rows}
    strangers = {("unexpected", 0, 5), ("unexpected", 1, 2)}
    assert told == strangers | ({("missing", 0, 7)} if whole else set())
    assert all("ledger" in r.why for r in rows)
