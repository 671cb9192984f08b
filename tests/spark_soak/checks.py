"""Check that each report covers everything and that all of it agrees."""

from __future__ import annotations

from streams.spark import Cut
from streams.spark.reconciliation.report import Report
from tests.spark_soak.topology import ACCOUNTS, EVENTS


def wrong(report: Report) -> list[str]:
    """Return what keeps the report from being clean: rows that differ, accounts not checked."""
    found = [f"{each.name} was not checked: {each.why}" for each in report.refused]
    found += [f"{name} was not checked" for name in ACCOUNTS - report.accounts.keys()]
    found += [str(row) for row in report.some_off(20)]
    return found if found or report.balanced else ["the results are not as expected"]


def read_at(cut: Cut) -> int:
    """Return how many records of the input the application has read; its topic has no markers."""
    return sum(offset for partition, offset in cut.offsets.items() if partition.topic == EVENTS)


def written_at(cut: Cut) -> int:
    """Return the offsets that the application has written, markers and changelogs' records too."""
    outputs = 0 if cut.ends is None else sum(cut.ends.values())
    return outputs + sum(at for store in cut.stores.values() for at in store.positions.values())
