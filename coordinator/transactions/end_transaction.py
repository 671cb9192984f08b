"""EndTxn, aborts by time-out and by fencing, and the completion that follows each of them.

`decide_end` writes PrepareCommit or PrepareAbort: from then on the outcome stands. `complete`
writes Complete* once every marker is there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from coordinator.errors import Code, Refused
from coordinator.shard.decision import Decision
from coordinator.transactions.add_partitions import find_owned
from coordinator.transactions.state import (
    AT_REST,
    EPOCH_MAX,
    NO_EPOCH,
    PREPARED,
    Record,
    Status,
    Transaction,
    TransactionForgotten,
    TransactionSaved,
    TransactionState,
)


@dataclass(frozen=True, slots=True)
class EndTransaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


# A client's EndTxn by state (transactions v1): None decides it; a code is the answer.
# Outcome asked for:             commit                          abort
ANSWERS: dict[Status, tuple[Code | None, Code | None]] = {
    Status.EMPTY: (Code.INVALID_TXN_STATE, Code.INVALID_TXN_STATE),
    Status.ONGOING: (None, None),
    Status.PREPARE_COMMIT: (Code.CONCURRENT_TRANSACTIONS, Code.INVALID_TXN_STATE),
    Status.PREPARE_ABORT: (Code.INVALID_TXN_STATE, Code.CONCURRENT_TRANSACTIONS),
    Status.COMPLETE_COMMIT: (Code.NONE, Code.INVALID_TXN_STATE),
    Status.COMPLETE_ABORT: (Code.INVALID_TXN_STATE, Code.NONE),
}


def decide_end(
    state: TransactionState, command: EndTransaction, now_ms: int
) -> Decision[Record, bool]:
    """Decide the outcome. True: markers are to be written; False: a retry, all is done."""
    known = find_owned(state, command.transactional_id, command.producer_id, command.producer_epoch)
    commit_answer, abort_answer = ANSWERS[known.status]
    answer = commit_answer if command.committed else abort_answer
    if answer is Code.NONE:
        return Decision((), False)
    if answer is not None:
        asked = "commit" if command.committed else "abort"
        raise Refused(answer, f"{asked} of {known.transactional_id} in {known.status.name}")
    status = Status.PREPARE_COMMIT if command.committed else Status.PREPARE_ABORT
    return Decision((TransactionSaved(replace(known, status=status, update_ms=now_ms)),), True)


def fence_and_abort(known: Transaction, now_ms: int) -> Decision[Record, None]:
    """Abort an Ongoing transaction over its owner's head: one epoch up, so that he is fenced."""
    if known.producer_epoch >= EPOCH_MAX:
        raise AssertionError(f"no epoch is left to fence with: {known}")
    saved = replace(
        known,
        status=Status.PREPARE_ABORT,
        producer_epoch=known.producer_epoch + 1,
        last_producer_epoch=NO_EPOCH,
        update_ms=now_ms,
    )
    return Decision((TransactionSaved(saved),), None)


def complete(known: Transaction, now_ms: int) -> Decision[Record, None]:
    """All markers are written."""
    if known.status not in PREPARED:
        raise AssertionError(f"nothing to complete: {known}")
    committed = known.status is Status.PREPARE_COMMIT
    saved = replace(
        known,
        status=Status.COMPLETE_COMMIT if committed else Status.COMPLETE_ABORT,
        partitions=frozenset(),
        update_ms=now_ms,
    )
    return Decision((TransactionSaved(saved),), None)


def forget_expired(
    state: TransactionState, expiration_ms: int, now_ms: int
) -> Decision[Record, None]:
    """Ids that nobody has used for `expiration_ms` and that have no transaction."""
    expired = tuple(
        TransactionForgotten(known.transactional_id)
        for known in state.transactions.values()
        if known.status in AT_REST and known.update_ms + expiration_ms <= now_ms
    )
    return Decision(expired, None)
