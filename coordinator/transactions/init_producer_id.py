"""Decides InitProducerId for a transactional id: a new owner, or a higher epoch for the same one.

Pure decisions (KIP-360). `find_prerequisite` says what has to come first, if anything: the
transaction of the previous owner may have to be aborted, or a producer id fetched.
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
    Ownership,
    Record,
    Status,
    Transaction,
    TransactionSaved,
    TransactionState,
    is_exhausted,
)


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """Represents a request for the producer id and epoch of a transactional id.

    `producer_id` and `producer_epoch` are the ones that the producer has now; -1 when it starts.
    """

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH

    @property
    def keeps_owner(self) -> bool:
        """Whether the producer names its producer id or epoch, and wants the next epoch."""
        return self.producer_id != NO_PRODUCER_ID or self.producer_epoch != NO_EPOCH


class First(Enum):
    """Names the step that has to be done before the request can be decided."""

    NOTHING = auto()
    ABORT = auto()  # fence and abort the transaction of the owner so far
    NEW_PRODUCER_ID = auto()


def judge(state: TransactionState, command: InitProducerId) -> First:
    """Return the step that has to be done before the request can be decided.

    An unknown id is simply new. Raises: Refused (CONCURRENT_TRANSACTIONS if a decided transaction
    is not completed yet, PRODUCER_FENCED if the id has another owner).
    """
    known = state.transactions.get(command.transactional_id)
    if known is None:
        return First.NEW_PRODUCER_ID
    if command.keeps_owner and not _owns(known, command):
        raise Refused(
            Code.PRODUCER_FENCED,
            f"{command.transactional_id} belongs to producer id {known.producer_id}, "
            f"not to {command.producer_id}",
        )
    if known.status in PREPARED:
        raise Refused(Code.CONCURRENT_TRANSACTIONS, f"{known.transactional_id} is being completed")
    if known.status is Status.ONGOING:
        return First.ABORT
    if known.status not in AT_REST:
        raise AssertionError(f"no record ever says so: {known}")
    if _rotates(known, command):
        return First.NEW_PRODUCER_ID
    return First.NOTHING


def init_producer_id(
    state: TransactionState, command: InitProducerId, new_producer_id: int, now_ms: int
) -> Decision[Record, Ownership]:
    """Decide to give the id to the requesting producer, with a higher epoch or a new producer id.

    `new_producer_id` is used where `find_prerequisite` asked for one. Raises: Refused
    (PRODUCER_FENCED).
    """
    known = state.transactions.get(command.transactional_id)
    if known is None:
        saved = Transaction(
            transactional_id=command.transactional_id,
            producer_id=new_producer_id,
            producer_epoch=0,
            timeout_ms=command.timeout_ms,
            status=Status.EMPTY,
            update_ms=now_ms,
            previous_producer_id=new_producer_id,
        )
    elif _rotates(known, command):
        saved = replace(
            _emptied(known, command.timeout_ms, now_ms),
            producer_id=new_producer_id,
            producer_epoch=0,
            last_producer_epoch=command.producer_epoch if command.keeps_owner else NO_EPOCH,
        )
    elif _is_retry(known, command):
        saved = replace(
            _emptied(known, command.timeout_ms, now_ms),
            previous_producer_id=known.previous_producer_id,  # so that a retry may come again
        )
    else:
        if command.keeps_owner and command.producer_epoch != known.producer_epoch:
            raise _fenced(known, command)
        saved = replace(
            _emptied(known, command.timeout_ms, now_ms),
            producer_epoch=known.producer_epoch + 1,
            last_producer_epoch=command.producer_epoch,
        )
    answer = Ownership(saved.producer_id, saved.producer_epoch)
    return Decision((TransactionSaved(saved),), answer)


def _owns(known: Transaction, command: InitProducerId) -> bool:
    """Whether the request names the id's producer id, or the one before it, out of epochs."""
    return command.producer_id == known.producer_id or (
        command.producer_id == known.previous_producer_id and is_exhausted(command.producer_epoch)
    )


def _rotates(known: Transaction, command: InitProducerId) -> bool:
    """Whether the owner's epochs are used up, so that the id gets a new producer id."""
    return known.epoch_is_exhausted and (
        not command.keeps_owner or command.producer_epoch == known.producer_epoch
    )


def _is_retry(known: Transaction, command: InitProducerId) -> bool:
    """Whether the request names the epoch before the one last given, as its answer was lost."""
    return command.keeps_owner and command.producer_epoch == known.last_producer_epoch


def _emptied(known: Transaction, timeout_ms: int, now_ms: int) -> Transaction:
    """Return the next version of a transaction, empty and without partitions."""
    return known.followed_by(
        status=Status.EMPTY,
        timeout_ms=timeout_ms,
        update_ms=now_ms,
        start_ms=-1,
        partitions=frozenset(),
    )


def _fenced(known: Transaction, command: InitProducerId) -> Refused:
    """Make the refusal (PRODUCER_FENCED) of a request that names an old epoch."""
    return Refused(
        Code.PRODUCER_FENCED,
        f"{known.transactional_id} is at epoch {known.producer_epoch}, "
        f"the producer at {command.producer_epoch}",
    )
