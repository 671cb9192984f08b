"""The states of a transaction: what a shard of `__transaction_state` knows.

Theory of operation. A transactional id always has at most one transaction. AddPartitions opens it;
EndTxn, a time-out or the next owner of the id decides it: PrepareCommit or PrepareAbort in the log
is the decision, and nothing takes it back. Then a marker goes to every partition, and Complete*
says that all are written. Everything between two records is lost in a crash and nothing is lost
with it: Ongoing is aborted by its timer, Prepare* is carried out again when the log is loaded,
markers that were written before are written once more, which changes nothing.

An owner is a (producer id, epoch). Whoever asks for the id next gets a higher epoch, and markers
carry the epoch, so that partitions refuse the old owner from then on.

PrepareEpochFence is Kafka's state of memory between bumping the epoch of an Ongoing transaction and
persisting its PrepareAbort. Here both are one decision, so it is never entered; Dead is the state
of an id between its expiry and its tombstone, which are one decision too. They keep their places
in the table because their numbers are Kafka's.

`previous_producer_id` and `last_producer_epoch` are Kafka's memory for retries of InitProducerId
(KIP-360). The log has no place for them (version 0 of the record; version 1 keeps the former,
neither keeps the latter), so after a restart such a retry is fenced, as it is in Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

TopicPartition: TypeAlias = tuple[str, int]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
EPOCH_MAX = 32_767


class Status(IntEnum):
    """Kafka's numbers, as they stand in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


# Each state, and the states that it may follow.
PREVIOUS: dict[Status, frozenset[Status]] = {
    Status.EMPTY: frozenset({Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT}),
    Status.ONGOING: frozenset(
        {Status.ONGOING, Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT}
    ),
    Status.PREPARE_COMMIT: frozenset({Status.ONGOING}),
    Status.PREPARE_ABORT: frozenset({Status.ONGOING, Status.PREPARE_EPOCH_FENCE}),
    Status.COMPLETE_COMMIT: frozenset({Status.PREPARE_COMMIT}),
    Status.COMPLETE_ABORT: frozenset({Status.PREPARE_ABORT}),
    Status.DEAD: frozenset({Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT}),
    Status.PREPARE_EPOCH_FENCE: frozenset({Status.ONGOING}),
}

AT_REST = PREVIOUS[Status.DEAD]  # no transaction is open, none is being completed
PREPARED = frozenset({Status.PREPARE_COMMIT, Status.PREPARE_ABORT})


@dataclass(frozen=True, slots=True)
class Transaction:
    """All that is known of one transactional id. Times in ms since the epoch; -1: not started."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: Status
    update_ms: int
    start_ms: int = -1
    partitions: frozenset[TopicPartition] = frozenset()
    previous_producer_id: int = field(default=NO_PRODUCER_ID, compare=False)
    last_producer_epoch: int = field(default=NO_EPOCH, compare=False)

    @property
    def epoch_is_exhausted(self) -> bool:
        """No owner gets a higher epoch: 32767 is left for fencing the last one."""
        return is_exhausted(self.producer_epoch)

    @property
    def deadline_ms(self) -> int:
        """When an Ongoing transaction is aborted."""
        return self.start_ms + self.timeout_ms


def is_exhausted(epoch: int) -> bool:
    return epoch >= EPOCH_MAX - 1


@dataclass(frozen=True, slots=True)
class TransactionSaved:
    """This is what is known of the id now."""

    transaction: Transaction


@dataclass(frozen=True, slots=True)
class TransactionForgotten:
    """The id has expired: a tombstone."""

    transactional_id: str


Record: TypeAlias = TransactionSaved | TransactionForgotten


@dataclass(slots=True)
class TransactionState:
    """One shard's transactions by transactional id; only apply() writes it."""

    transactions: dict[str, Transaction] = field(default_factory=dict)
