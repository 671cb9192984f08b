"""Select the transactions that ListTransactions returns, by state, producer, age and id."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from coordinator.transactions.state import STATUS_NAMES, TransactionMetadata, TransactionStatus

_BY_NAME = {name: status for status, name in STATUS_NAMES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFilters:
    """Holds the filters of a ListTransactions request; an empty field filters nothing.

    `duration_ms`: open for longer than that; -1: any age. An id without a transaction counts as
    having started in 1970, as in Kafka. `matches`: of the transactional id.
    """

    state_names: Collection[str] = ()
    producer_ids: Collection[int] = ()
    duration_ms: int = -1
    matches: Callable[[str], object] | None = None

    @property
    def unknown_state_names(self) -> list[str]:
        """Return the requested state names that don't exist."""
        return [name for name in self.state_names if name not in _BY_NAME]


def select_transactions(
    transactions: Iterable[TransactionMetadata], filters: TransactionFilters, now_ms: int
) -> Iterator[TransactionMetadata]:
    """Yield the transactions that pass all filters."""
    statuses: set[TransactionStatus] | None = None
    if filters.state_names:
        statuses = {_BY_NAME[name] for name in filters.state_names if name in _BY_NAME}
    for known in transactions:
        if statuses is not None and known.status not in statuses:
            continue
        if filters.producer_ids and known.producer_id not in filters.producer_ids:
            continue
        if filters.duration_ms >= 0 and now_ms - known.start_ms <= filters.duration_ms:
            continue
        if filters.matches is not None and not filters.matches(known.transactional_id):
            continue
        yield known
