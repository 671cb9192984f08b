"""Apply records of `__transaction_state`: the one place that changes a TransactionShardState.

A live record follows the one before it, so its step is checked against the table. A log that is
being loaded may have been compacted (only the last record of each id is left), and then a step may
seem to leap.
"""

from __future__ import annotations

from coordinator.shard.decision import LogRecordOrigin, TransactionEnded
from coordinator.transactions.state import (
    PREVIOUS,
    TransactionForgotten,
    TransactionRecord,
    TransactionSaved,
    TransactionShardState,
    TransactionStatus,
)


def apply_record(
    state: TransactionShardState,
    record: TransactionRecord | TransactionEnded,
    origin: LogRecordOrigin,
) -> None:
    """Apply a record to the state.

    Raises: ValueError for a change of state that no decision can have made.
    """
    match record:
        case TransactionSaved(transaction):
            known = state.transactions.get(transaction.transactional_id)
            if not origin.replaying:
                before = TransactionStatus.EMPTY if known is None else known.status
                if before not in PREVIOUS[transaction.status]:
                    raise ValueError(f"{before.name} can't be followed by {transaction}")
                if (
                    known is not None
                    and transaction.producer_id == known.producer_id
                    and transaction.producer_epoch < known.producer_epoch
                ):
                    raise ValueError(f"the epoch falls from {known.producer_epoch}: {transaction}")
            state.transactions[transaction.transactional_id] = transaction
        case TransactionForgotten(transactional_id):
            state.transactions.pop(transactional_id, None)
        case TransactionEnded():
            raise ValueError(f"a marker among transaction records: {record} at {origin.offset}")
