"""Provides the former names of `streams.spark.reconciliation.ledger_check`, which replaces it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.spark.reconciliation.ledger_check import LedgerRuns, entries_in_cut

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Written", "entries_in_cut"]


class Written(LedgerRuns):
    """Indexes the ledger's runs of offsets, as `LedgerRuns` under its former name."""

    def against(self, found: DataFrame, topic: str, *, whole: bool) -> DataFrame:
        """Find records in no entry and runs with missing records; see `check_records`."""
        return self.check_records(found, topic, is_complete=whole)
