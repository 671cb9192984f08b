"""Defines the counters of the transaction coordinator, which metrics report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class TransactionCounters:
    """Counts the ends of transactions since the broker started, aborts by cause."""

    commits: int = 0
    aborts_by_client: int = 0
    aborts_by_init: int = 0
    aborts_by_timeout: int = 0
