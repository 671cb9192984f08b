"""Measure how old the open transactions are, for the metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from coordinator.transactions.state import TransactionMetadata, TransactionStatus


class OpenTransactionAges(NamedTuple):
    """Holds the age of the oldest open transaction in ms, and how many have passed their time-out.

    The age is 0 if none is open.
    """

    oldest_ms: int
    overdue_count: int


def measure_open_transactions(
    transactions: Iterable[TransactionMetadata], now_ms: int
) -> OpenTransactionAges:
    """Return how old the transactions are that nobody has decided to commit or abort yet."""
    oldest_ms = overdue_count = 0
    for known in transactions:
        if known.status is TransactionStatus.ONGOING:
            oldest_ms = max(oldest_ms, now_ms - known.start_ms)
            overdue_count += now_ms > known.deadline_ms
    return OpenTransactionAges(oldest_ms, overdue_count)
