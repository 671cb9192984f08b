"""Decide AddPartitionsToTxn, and AddOffsetsToTxn for the partition that has a group's offsets.

The transaction is opened by the first partition. Only partitions that are registered here get a
marker, so nothing may be written to any other.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from coordinator.errors import Code, Refused
from coordinator.shard.decision import Decision
from coordinator.transactions.state import (
    PREPARED,
    V0,
    TopicPartition,
    TransactionMetadata,
    TransactionRecord,
    TransactionSaved,
    TransactionShardState,
    TransactionStatus,
)


@dataclass(frozen=True, slots=True)
class AddPartitionsCommand:
    """Represents a request to add partitions to a producer's transaction.

    `version`: of transactions, as the client speaks them.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Set[TopicPartition]
    version: int = V0


def require_owned_transaction(
    state: TransactionShardState, transactional_id: str, producer_id: int, producer_epoch: int
) -> TransactionMetadata:
    """Return the transaction of a producer that still owns its transactional id.

    Raises: Refused (INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED).
    """
    if not transactional_id:
        raise Refused(Code.INVALID_REQUEST, "an empty transactional id")
    known = state.transactions.get(transactional_id)
    if known is None or known.producer_id != producer_id:
        raise Refused(
            Code.INVALID_PRODUCER_ID_MAPPING,
            f"{transactional_id} does not belong to producer id {producer_id}",
        )
    if known.producer_epoch != producer_epoch:
        raise Refused(
            Code.PRODUCER_FENCED,
            f"{transactional_id} is at epoch {known.producer_epoch}, the producer at "
            f"{producer_epoch}",
        )
    return known


def add_partitions(
    state: TransactionShardState, command: AddPartitionsCommand, now_ms: int
) -> Decision[TransactionRecord, None]:
    """Decide to register partitions in a transaction, opening it if it isn't open.

    Raises: Refused (CONCURRENT_TRANSACTIONS while the transaction before is being completed, and
    those of `require_owned_transaction`).
    """
    known = require_owned_transaction(
        state, command.transactional_id, command.producer_id, command.producer_epoch
    )
    if known.status in PREPARED:
        raise Refused(Code.CONCURRENT_TRANSACTIONS, f"{known.transactional_id} is being completed")
    if known.status is TransactionStatus.ONGOING and command.partitions <= known.partitions:
        return Decision((), None)
    saved = known.replace_and_link_previous(
        status=TransactionStatus.ONGOING,
        partitions=known.partitions | command.partitions,
        start_ms=known.start_ms if known.status is TransactionStatus.ONGOING else now_ms,
        update_ms=now_ms,
        client_version=command.version,
    )
    return Decision((TransactionSaved(saved),), None)


def check_partition_registered(
    state: TransactionShardState,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partition: TopicPartition,
) -> None:
    """Raise Refused if a partition isn't registered in the producer's open transaction.

    Raises: Refused (INVALID_TXN_STATE; CONCURRENT_TRANSACTIONS while the transaction is being
    completed; INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED for a producer that isn't the owner).
    """
    known = require_owned_transaction(state, transactional_id, producer_id, producer_epoch)
    if known.status in PREPARED:
        raise Refused(Code.CONCURRENT_TRANSACTIONS, f"{known.transactional_id} is being completed")
    if known.status is not TransactionStatus.ONGOING or partition not in known.partitions:
        raise Refused(
            Code.INVALID_TXN_STATE,
            f"{partition[0]}-{partition[1]} is not part of the transaction of {transactional_id}",
        )
