"""Decide InitProducerId for a transactional id: a new owner, or a higher epoch for the same one.

Pure decisions (KIP-360). `select_prerequisite_or_refuse` says what has to come first, if anything:
the transaction of the previous owner may have to be aborted, or a producer id fetched.
`init_producer_id` then decides.

One step is finished here that Kafka leaves to the client's retry: an Ongoing transaction is
aborted, whatever epoch the request names, and the request is judged afterwards, instead of
CONCURRENT_TRANSACTIONS and a wait of 500 ms. In transactions v2 that abort leaves the owner's epoch
as the last one, so an owner that named it goes on with the next, and nobody else does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

from coordinator.errors import Code, Refused
from coordinator.shard.decision import Decision
from coordinator.transactions.state import (
    AT_REST,
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    ProducerIdAndEpoch,
    TransactionMetadata,
    TransactionRecord,
    TransactionSaved,
    TransactionShardState,
    TransactionStatus,
    is_epoch_exhausted,
)


@dataclass(frozen=True, slots=True)
class InitProducerIdCommand:
    """Represents a request for the producer id and epoch of a transactional id.

    `producer_id` and `producer_epoch` are the ones that the producer has now; -1 when it starts.
    """

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH

    @property
    def names_owner(self) -> bool:
        """Return whether the producer names its producer id or epoch, and wants the next epoch."""
        return self.producer_id != NO_PRODUCER_ID or self.producer_epoch != NO_EPOCH


class Prerequisite(Enum):
    """Names the step that has to be done before an InitProducerId can be decided."""

    NOTHING = auto()
    ABORT = auto()  # fence and abort the transaction of the owner so far
    NEW_PRODUCER_ID = auto()


def select_prerequisite_or_refuse(
    state: TransactionShardState, command: InitProducerIdCommand
) -> Prerequisite:
    """Return the step that has to be done before an InitProducerId can be decided.

    An unknown id is simply new. Raises: Refused (CONCURRENT_TRANSACTIONS if a decided transaction
    is not completed yet, PRODUCER_FENCED if the id has another owner).
    """
    known = state.transactions.get(command.transactional_id)
    if known is None:
        return Prerequisite.NEW_PRODUCER_ID
    if command.names_owner and not _owns_id(known, command):
        raise Refused(
            Code.PRODUCER_FENCED,
            f"{command.transactional_id} belongs to producer id {known.producer_id}, "
            f"not to {command.producer_id}",
        )
    if known.status in PREPARED:
        raise Refused(Code.CONCURRENT_TRANSACTIONS, f"{known.transactional_id} is being completed")
    if known.status is TransactionStatus.ONGOING:
        return Prerequisite.ABORT
    if known.status not in AT_REST:
        raise AssertionError(f"no record ever says so: {known}")
    if _needs_new_producer_id(known, command):
        return Prerequisite.NEW_PRODUCER_ID
    return Prerequisite.NOTHING


def init_producer_id(
    state: TransactionShardState, command: InitProducerIdCommand, new_producer_id: int, now_ms: int
) -> Decision[TransactionRecord, ProducerIdAndEpoch]:
    """Decide to give the id to the requesting producer, with a higher epoch or a new producer id.

    `new_producer_id` is used where `select_prerequisite_or_refuse` asked for one. Raises: Refused
    (PRODUCER_FENCED).
    """
    known = state.transactions.get(command.transactional_id)
    if known is None:
        saved = TransactionMetadata(
            transactional_id=command.transactional_id,
            producer_id=new_producer_id,
            producer_epoch=0,
            timeout_ms=command.timeout_ms,
            status=TransactionStatus.EMPTY,
            update_ms=now_ms,
            previous_producer_id=new_producer_id,
        )
    elif _needs_new_producer_id(known, command):
        saved = replace(
            _build_emptied_successor(known, command.timeout_ms, now_ms),
            producer_id=new_producer_id,
            producer_epoch=0,
            last_producer_epoch=command.producer_epoch if command.names_owner else NO_EPOCH,
        )
    elif _is_retry(known, command):
        saved = replace(
            _build_emptied_successor(known, command.timeout_ms, now_ms),
            previous_producer_id=known.previous_producer_id,  # so that a retry may come again
        )
    else:
        if command.names_owner and command.producer_epoch != known.producer_epoch:
            raise _create_fenced_refusal(known, command)
        saved = replace(
            _build_emptied_successor(known, command.timeout_ms, now_ms),
            producer_epoch=known.producer_epoch + 1,
            last_producer_epoch=command.producer_epoch,
        )
    answer = ProducerIdAndEpoch(saved.producer_id, saved.producer_epoch)
    return Decision((TransactionSaved(saved),), answer)


def _owns_id(transaction: TransactionMetadata, command: InitProducerIdCommand) -> bool:
    """Return whether a request names the owner's producer id, or the exhausted one before it."""
    return command.producer_id == transaction.producer_id or (
        command.producer_id == transaction.previous_producer_id
        and is_epoch_exhausted(command.producer_epoch)
    )


def _needs_new_producer_id(
    transaction: TransactionMetadata, command: InitProducerIdCommand
) -> bool:
    """Return whether the owner's epochs are used up, so that the id gets a new producer id."""
    return transaction.epoch_is_exhausted and (
        not command.names_owner or command.producer_epoch == transaction.producer_epoch
    )


def _is_retry(transaction: TransactionMetadata, command: InitProducerIdCommand) -> bool:
    """Return whether a request repeats an answered one: its epoch is that before the bump."""
    return command.names_owner and command.producer_epoch == transaction.last_producer_epoch


def _build_emptied_successor(
    transaction: TransactionMetadata, timeout_ms: int, now_ms: int
) -> TransactionMetadata:
    """Return the next version of a transaction, empty and without partitions."""
    return transaction.replace_and_link_previous(
        status=TransactionStatus.EMPTY,
        timeout_ms=timeout_ms,
        update_ms=now_ms,
        start_ms=-1,
        partitions=frozenset(),
    )


def _create_fenced_refusal(
    transaction: TransactionMetadata, command: InitProducerIdCommand
) -> Refused:
    """Make the refusal (PRODUCER_FENCED) of a request that names an old epoch."""
    return Refused(
        Code.PRODUCER_FENCED,
        f"{transaction.transactional_id} is at epoch {transaction.producer_epoch}, "
        f"the producer at {command.producer_epoch}",
    )
