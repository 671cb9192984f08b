"""InitProducerId for a transactional id: a new owner, or a higher epoch for the same (KIP-360).

Pure decisions. `judge` says what has to come first, if anything: the transaction of the previous
owner may have to be aborted, or a producer id fetched. `init_producer_id` then decides.

One step is finished here that Kafka leaves to the client's retry: an Ongoing transaction is fenced
and aborted, and the request is answered afterwards, instead of 51 and a wait of 500 ms. A request
that names an epoch is checked before the abort, so that a producer that is itself out of date
can't fence the owner.
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
    Record,
    Status,
    Transaction,
    TransactionSaved,
    TransactionState,
    is_exhausted,
)


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """`producer_id` and `producer_epoch` are what the producer has now; -1 when it starts.

    `fenced_epoch` is the epoch that the abort for this very request has left behind.
    """

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    fenced_epoch: int = NO_EPOCH

    @property
    def keeps_owner(self) -> bool:
        """The producer has an epoch already and wants the next one."""
        return self.producer_id != NO_PRODUCER_ID or self.producer_epoch != NO_EPOCH

    def is_current(self, known: Transaction) -> bool:
        """The producer's epoch is the one of the log, but for our own fencing."""
        return known.producer_epoch in (self.producer_epoch, self.fenced_epoch)


@dataclass(frozen=True, slots=True)
class Ownership:
    producer_id: int
    producer_epoch: int


class First(Enum):
    """What has to be done before the request can be decided."""

    NOTHING = auto()
    ABORT = auto()  # fence and abort the transaction of the owner so far
    NEW_PRODUCER_ID = auto()


def judge(state: TransactionState, command: InitProducerId) -> First:
    """What comes first. Refuses what can't be granted at all.

    49 is not among the answers: an unknown id is simply new. 51: a decided transaction is not
    completed yet. 90: the id has another owner.
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
        if command.keeps_owner and command.producer_epoch != known.producer_epoch:
            raise _fenced(known, command)
        return First.ABORT
    if known.status not in AT_REST:
        raise AssertionError(f"no record ever says so: {known}")
    if _rotates(known, command):
        return First.NEW_PRODUCER_ID
    return First.NOTHING


def init_producer_id(
    state: TransactionState, command: InitProducerId, new_producer_id: int, now_ms: int
) -> Decision[Record, Ownership]:
    """Hand the id over. `new_producer_id` is used where judge() asked for one."""
    known = state.transactions.get(command.transactional_id)
    if known is None:
        saved = Transaction(
            transactional_id=command.transactional_id,
            producer_id=new_producer_id,
            producer_epoch=0,
            timeout_ms=command.timeout_ms,
            status=Status.EMPTY,
            update_ms=now_ms,
        )
    elif _rotates(known, command):
        saved = replace(
            _emptied(known, command.timeout_ms, now_ms),
            producer_id=new_producer_id,
            producer_epoch=0,
            previous_producer_id=known.producer_id,
            last_producer_epoch=command.producer_epoch if command.keeps_owner else NO_EPOCH,
        )
    else:
        epoch, last_epoch = _next_epoch(known, command)
        saved = replace(
            _emptied(known, command.timeout_ms, now_ms),
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
        )
    answer = Ownership(saved.producer_id, saved.producer_epoch)
    return Decision((TransactionSaved(saved),), answer)


def _owns(known: Transaction, command: InitProducerId) -> bool:
    """The producer id matches, or it is the one before and has run out of epochs."""
    return command.producer_id == known.producer_id or (
        command.producer_id == known.previous_producer_id and is_exhausted(command.producer_epoch)
    )


def _rotates(known: Transaction, command: InitProducerId) -> bool:
    return known.epoch_is_exhausted and (not command.keeps_owner or command.is_current(known))


def _next_epoch(known: Transaction, command: InitProducerId) -> tuple[int, int]:
    """The epoch to hand out, and the epoch whose owner may ask again for the same."""
    if not command.keeps_owner:
        return known.producer_epoch + 1, NO_EPOCH
    if command.is_current(known):
        return known.producer_epoch + 1, command.producer_epoch
    if command.producer_epoch == known.last_producer_epoch:
        return known.producer_epoch, known.last_producer_epoch  # the answer was lost: say it again
    raise _fenced(known, command)


def _emptied(known: Transaction, timeout_ms: int, now_ms: int) -> Transaction:
    return replace(
        known,
        status=Status.EMPTY,
        timeout_ms=timeout_ms,
        update_ms=now_ms,
        start_ms=-1,
        partitions=frozenset(),
    )


def _fenced(known: Transaction, command: InitProducerId) -> Refused:
    return Refused(
        Code.PRODUCER_FENCED,
        f"{known.transactional_id} is at epoch {known.producer_epoch}, "
        f"the producer at {command.producer_epoch}",
    )
