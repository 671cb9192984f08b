"""Measure how long a producer's transaction is open, to tell that it had expired.

After `transaction_timeout_ms` the brokers abort a transaction and raise its producer's epoch. What
the producer is told then, at its next call, is the same as if another one had its id: it is fenced.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from streams.errors import TaskMigrated


class TransactionAge:
    """Knows since when a transaction is open, if one is.

    `timeout_ms` is the producer's `transaction.timeout.ms`, None without transactions.
    """

    def __init__(
        self, timeout_ms: int | None, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._timeout_s = None if timeout_ms is None else timeout_ms / 1_000
        self._monotonic_s = monotonic_s
        self._began_at_s: float | None = None

    @property
    def is_open(self) -> bool:
        return self._began_at_s is not None

    def note_beginning(self) -> None:
        """Note that a transaction has begun."""
        self._began_at_s = self._monotonic_s()

    def note_end(self) -> None:
        """Note that the transaction has ended."""
        self._began_at_s = None

    def add_reason_of_fencing(self, error: Exception) -> Exception:
        """Return the error of a fenced producer with the reason, if its transaction had expired.

        Other errors are returned as they are.
        """
        if type(error) is not TaskMigrated or self._began_at_s is None or self._timeout_s is None:
            return error
        age_s = self._monotonic_s() - self._began_at_s
        if age_s <= self._timeout_s:
            return error
        explained = TaskMigrated(
            f"{error}: its transaction was open for {age_s:.1f} s, longer than "
            f"transaction_timeout_ms={self._timeout_s * 1_000:.0f}, so the brokers have aborted it"
        )
        explained.__cause__ = error.__cause__
        return explained
