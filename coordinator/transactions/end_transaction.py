"""Decide the end of transactions: EndTxn, aborts by time-out and by fencing, and completion.

`require_transaction_to_end` says whether there is anything to end. `prepare_transaction_end` writes
PrepareCommit or PrepareAbort: from then on the outcome stands. `complete_transaction_end` writes
Complete* once every marker is there.

In transactions v2 every end bumps the epoch, so that a request that names the epoch before it is a
retry, and one that names the current epoch is the next end.
Source: kafka.coordinator.transaction.TransactionCoordinator, KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from coordinator.errors import Code, Refused
from coordinator.shard.decision import Decision
from coordinator.transactions.add_partitions import require_owned_transaction
from coordinator.transactions.state import (
    AT_REST,
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    V0,
    V2,
    ProducerIdAndEpoch,
    TransactionForgotten,
    TransactionMetadata,
    TransactionRecord,
    TransactionSaved,
    TransactionShardState,
    TransactionStatus,
)


@dataclass(frozen=True, slots=True)
class EndTransactionCommand:
    """Represents a client's request to commit or abort its transaction.

    `version`: of transactions, as the client speaks them.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    version: int = V0


_AnswersByStatus = dict[TransactionStatus, tuple[Code | None, Code | None]]

# Answers to a client's EndTxn by status, for commit and abort. None: the transaction is ended now.
V1_ANSWERS: _AnswersByStatus = {
    TransactionStatus.EMPTY: (Code.INVALID_TXN_STATE, Code.INVALID_TXN_STATE),
    TransactionStatus.ONGOING: (None, None),
    TransactionStatus.PREPARE_COMMIT: (Code.CONCURRENT_TRANSACTIONS, Code.INVALID_TXN_STATE),
    TransactionStatus.PREPARE_ABORT: (Code.INVALID_TXN_STATE, Code.CONCURRENT_TRANSACTIONS),
    TransactionStatus.COMPLETE_COMMIT: (Code.NONE, Code.INVALID_TXN_STATE),
    TransactionStatus.COMPLETE_ABORT: (Code.INVALID_TXN_STATE, Code.NONE),
}
# Transactions v2, with the current epoch: a new end. An abort is taken without a transaction, too.
V2_ANSWERS: _AnswersByStatus = {
    TransactionStatus.EMPTY: (Code.INVALID_TXN_STATE, None),
    TransactionStatus.ONGOING: (None, None),
    TransactionStatus.PREPARE_COMMIT: (Code.PRODUCER_FENCED, Code.PRODUCER_FENCED),
    TransactionStatus.PREPARE_ABORT: (Code.PRODUCER_FENCED, Code.PRODUCER_FENCED),
    TransactionStatus.COMPLETE_COMMIT: (Code.INVALID_TXN_STATE, None),
    TransactionStatus.COMPLETE_ABORT: (Code.INVALID_TXN_STATE, None),
}
# Transactions v2, with the epoch before: a retry of the end that bumped it.
V2_RETRY_ANSWERS: _AnswersByStatus = {
    TransactionStatus.EMPTY: (Code.PRODUCER_FENCED, Code.PRODUCER_FENCED),
    TransactionStatus.ONGOING: (Code.PRODUCER_FENCED, Code.PRODUCER_FENCED),
    TransactionStatus.PREPARE_COMMIT: (Code.CONCURRENT_TRANSACTIONS, Code.INVALID_TXN_STATE),
    TransactionStatus.PREPARE_ABORT: (Code.INVALID_TXN_STATE, Code.CONCURRENT_TRANSACTIONS),
    TransactionStatus.COMPLETE_COMMIT: (Code.NONE, Code.INVALID_TXN_STATE),
    TransactionStatus.COMPLETE_ABORT: (Code.INVALID_TXN_STATE, Code.NONE),
}


class TransactionToEnd(NamedTuple):
    """Represents the transaction that a request names."""

    transaction: TransactionMetadata
    must_end: bool  # else the request is a retry, and all is done


def require_transaction_to_end(
    state: TransactionShardState, command: EndTransactionCommand
) -> TransactionToEnd:
    """Return the producer's transaction, and whether the request has to end it now.

    Raises: Refused (INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
    CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE).
    """
    known = state.transactions.get(command.transactional_id)
    if command.version < V2:
        known = require_owned_transaction(
            state, command.transactional_id, command.producer_id, command.producer_epoch
        )
        answers = V1_ANSWERS
    elif known is not None and _is_retry(known, command):
        answers = V2_RETRY_ANSWERS
    else:
        known = require_owned_transaction(
            state, command.transactional_id, command.producer_id, command.producer_epoch
        )
        answers = V2_ANSWERS
    commit_answer, abort_answer = answers[known.status]
    answer = commit_answer if command.committed else abort_answer
    if answer is None:
        return TransactionToEnd(known, must_end=True)
    if answer is Code.NONE:
        return TransactionToEnd(known, must_end=False)
    outcome = "commit" if command.committed else "abort"
    raise Refused(
        answer,
        f"{outcome} of {known.transactional_id} at epoch {command.producer_epoch} in "
        f"{known.status.name} at epoch {known.producer_epoch}",
    )


def _is_retry(transaction: TransactionMetadata, command: EndTransactionCommand) -> bool:
    """Return whether a request repeats an end that has succeeded: its epoch is one behind.

    After the last epoch the bump was to a new producer id, and the request names the one before.
    """
    if command.producer_id == transaction.producer_id:
        return transaction.producer_epoch == command.producer_epoch + 1
    return (
        command.producer_id == transaction.previous_producer_id
        and command.producer_epoch == EPOCH_MAX - 1
        and transaction.producer_epoch == 0
    )


def needs_new_producer_id(transaction: TransactionMetadata, version: int) -> bool:
    """Return whether ending a transaction uses up its last epoch, so that a new id is needed."""
    return version >= V2 and transaction.epoch_is_exhausted


def prepare_transaction_end(
    transaction: TransactionMetadata,
    *,
    committed: bool,
    version: int,
    next_producer_id: int,
    now_ms: int,
) -> Decision[TransactionRecord, ProducerIdAndEpoch]:
    """Decide to commit or abort a transaction; the response is the producer id and epoch after it.

    `next_producer_id`: a new one if `needs_new_producer_id`, else -1.
    """
    bumped: dict[str, int] = {}
    if version >= V2:
        bumped = {
            "producer_epoch": min(EPOCH_MAX, transaction.producer_epoch + 1),
            "last_producer_epoch": transaction.producer_epoch,
            "next_producer_id": next_producer_id,
        }
    saved = transaction.replace_and_link_previous(
        status=TransactionStatus.PREPARE_COMMIT if committed else TransactionStatus.PREPARE_ABORT,
        client_version=version,
        update_ms=now_ms,
        start_ms=transaction.start_ms
        if transaction.status is TransactionStatus.ONGOING
        else now_ms,
        **bumped,
    )
    return Decision((TransactionSaved(saved),), saved.owner_afterwards)


def fence_and_abort(
    transaction: TransactionMetadata, *, version: int, next_producer_id: int, now_ms: int
) -> Decision[TransactionRecord, ProducerIdAndEpoch]:
    """Decide to abort an Ongoing transaction with a higher epoch, so that its owner is fenced.

    `version`: the level of `transaction.version`. In v2 every end bumps the epoch anyway.
    """
    decision = prepare_transaction_end(
        transaction,
        committed=False,
        version=version,
        next_producer_id=next_producer_id,
        now_ms=now_ms,
    )
    if version >= V2:
        return decision
    [record] = decision.records
    assert isinstance(record, TransactionSaved)
    fenced = replace(
        record.transaction,
        client_version=V0,
        producer_epoch=min(EPOCH_MAX, transaction.producer_epoch + 1),
        last_producer_epoch=NO_EPOCH,
    )
    return Decision((TransactionSaved(fenced),), fenced.owner_afterwards)


def complete_transaction_end(
    transaction: TransactionMetadata, now_ms: int
) -> Decision[TransactionRecord, None]:
    """Decide to complete a transaction of which all markers are written."""
    if transaction.status not in PREPARED:
        raise AssertionError(f"nothing to complete: {transaction}")
    committed = transaction.status is TransactionStatus.PREPARE_COMMIT
    owner = transaction.owner_afterwards
    saved = transaction.replace_and_link_previous(
        status=TransactionStatus.COMPLETE_COMMIT if committed else TransactionStatus.COMPLETE_ABORT,
        producer_id=owner.producer_id,
        producer_epoch=owner.producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        update_ms=now_ms,
    )
    return Decision((TransactionSaved(saved),), None)


def make_expiry_tombstones(
    state: TransactionShardState, transactional_ids: Iterable[str], expiration_ms: int, now_ms: int
) -> list[TransactionForgotten]:
    """Make a tombstone for each of these ids that has expired and has no open transaction.

    An id has expired if nobody has used it for `expiration_ms`. Unknown ids are passed over.
    """
    found = map(state.transactions.get, transactional_ids)
    return [
        TransactionForgotten(known.transactional_id)
        for known in found
        if known is not None
        and known.status in AT_REST
        and known.update_ms + expiration_ms <= now_ms
    ]
