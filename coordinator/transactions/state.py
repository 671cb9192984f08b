"""Define the status of a transaction and the state of a shard of `__transaction_state`.

Theory of operation. A transactional id always has at most one transaction. AddPartitions opens it;
EndTxn, a time-out or the next owner of the id decides it: PrepareCommit or PrepareAbort in the log
is the decision, and nothing takes it back. Then a marker goes to every partition, and Complete*
says that all are written. A crash between two records loses nothing: Ongoing is aborted by its
timer, the markers of Prepare* are written again when the log is loaded, and a marker that is
written twice changes nothing.

An owner is a (producer id, epoch). The next producer that asks for the id gets a higher epoch, and
markers carry the epoch, so that partitions refuse the old owner from then on.

PrepareEpochFence is Kafka's state in memory between bumping the epoch of an Ongoing transaction and
persisting its PrepareAbort. Here both are one decision, so it is never entered; Dead is the state
of an id between its expiry and its tombstone, which are one decision too. They keep their places in
the table because their numbers are Kafka's.

Transactions v2 (KIP-890, `transaction.version` 2). Every end bumps the epoch, in the record that
decides it: the markers carry the new epoch, and late batches of the old one are refused behind
them. When no epoch is left, the decision reserves the next producer id, the markers carry the last
epoch there is, and Complete* moves to the new id at epoch 0. `client_version` is the version that
the client speaks who opened or ended the transaction; an abort of the coordinator's own uses the
version that the broker has finalised. A client may abort where nothing is open: the epoch rises.

`previous_producer_id` and `last_producer_epoch` identify retries: of InitProducerId (KIP-360) and,
in v2, of EndTxn. The log keeps the former (from version 1 of the record on) and has no place for
the latter, so after a restart a retry of InitProducerId is fenced, as it is in Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
EPOCH_MAX = 32_767

# `transaction.version`: 0 and 1 differ in the record's format, 2 in what an end does.
V0, V1, V2 = 0, 1, 2


class TransactionStatus(IntEnum):
    """Lists the states of a transaction with Kafka's numbers, which stand in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


# The names by which clients know the states.
STATUS_NAMES: dict[TransactionStatus, str] = {
    status: status.name.title().replace("_", "") for status in TransactionStatus
}

# Each state, and the states that it may follow.
PREVIOUS: dict[TransactionStatus, frozenset[TransactionStatus]] = {
    TransactionStatus.EMPTY: frozenset(
        {
            TransactionStatus.EMPTY,
            TransactionStatus.COMPLETE_COMMIT,
            TransactionStatus.COMPLETE_ABORT,
        }
    ),
    TransactionStatus.ONGOING: frozenset(
        {
            TransactionStatus.ONGOING,
            TransactionStatus.EMPTY,
            TransactionStatus.COMPLETE_COMMIT,
            TransactionStatus.COMPLETE_ABORT,
        }
    ),
    TransactionStatus.PREPARE_COMMIT: frozenset({TransactionStatus.ONGOING}),
    # The last three: transactions v2 only, an abort of nothing.
    TransactionStatus.PREPARE_ABORT: frozenset(
        {
            TransactionStatus.ONGOING,
            TransactionStatus.PREPARE_EPOCH_FENCE,
            TransactionStatus.EMPTY,
            TransactionStatus.COMPLETE_COMMIT,
            TransactionStatus.COMPLETE_ABORT,
        }
    ),
    TransactionStatus.COMPLETE_COMMIT: frozenset({TransactionStatus.PREPARE_COMMIT}),
    TransactionStatus.COMPLETE_ABORT: frozenset({TransactionStatus.PREPARE_ABORT}),
    TransactionStatus.DEAD: frozenset(
        {
            TransactionStatus.EMPTY,
            TransactionStatus.COMPLETE_COMMIT,
            TransactionStatus.COMPLETE_ABORT,
        }
    ),
    TransactionStatus.PREPARE_EPOCH_FENCE: frozenset({TransactionStatus.ONGOING}),
}

AT_REST = PREVIOUS[TransactionStatus.DEAD]  # no transaction is open, none is being completed
PREPARED = frozenset({TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT})


@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """Represents the producer id and epoch under which a producer writes."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """Represents the transaction of one transactional id. Kafka: `TransactionMetadata`.

    Times are in ms since the epoch; -1: not started.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: TransactionStatus
    update_ms: int
    start_ms: int = -1
    partitions: frozenset[TopicPartition] = frozenset()
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID  # reserved by a decision that took the last epoch
    client_version: int = V0
    last_producer_epoch: int = field(default=NO_EPOCH, compare=False)  # not in the log

    def replace_and_link_previous(self, **changes: Any) -> TransactionMetadata:
        """Return a copy with these fields changed and this producer id as its previous one."""
        return replace(self, previous_producer_id=self.producer_id, **changes)

    @property
    def owner_afterwards(self) -> ProducerIdAndEpoch:
        """Return the producer id and epoch that own the id once this transaction is completed."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdAndEpoch(self.next_producer_id, 0)
        return ProducerIdAndEpoch(self.producer_id, self.producer_epoch)

    @property
    def epoch_is_exhausted(self) -> bool:
        """Return whether no owner can get a higher epoch: the last, 32767, is kept for fencing."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def deadline_ms(self) -> int:
        """Return the time at which an Ongoing transaction is aborted."""
        return self.start_ms + self.timeout_ms


def is_epoch_exhausted(epoch: int) -> bool:
    """Return whether no owner can get an epoch above this one."""
    return epoch >= EPOCH_MAX - 1


@dataclass(frozen=True, slots=True)
class TransactionSaved:
    """Records the present state of a transactional id."""

    transaction: TransactionMetadata


@dataclass(frozen=True, slots=True)
class TransactionForgotten:
    """Records that a transactional id has expired: a tombstone."""

    transactional_id: str


TransactionRecord: TypeAlias = TransactionSaved | TransactionForgotten


@dataclass(slots=True)
class TransactionShardState:
    """Holds the transactions of one shard by transactional id; only `apply_record` writes it."""

    transactions: dict[str, TransactionMetadata] = field(default_factory=dict)
