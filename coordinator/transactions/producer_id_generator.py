"""Generate producer ids that no transactional id has, as soon as all shards are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from coordinator.errors import Code, Refused
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.transactions.end_transaction import needs_new_producer_id
from coordinator.transactions.producer_ids import ProducerIdManager
from coordinator.transactions.shard import TransactionShard
from coordinator.transactions.state import NO_PRODUCER_ID, TransactionMetadata

ProducerId: TypeAlias = int


class ProducerIdGenerator:
    """Generates producer ids that nobody has had.

    Until every shard has said which ids it has, it is refused, as the log of the ids may have been
    lost, or be another broker's. A shard that has failed can't say it: then that log alone has to
    know.
    """

    def __init__(self, shards: Sequence[TransactionShard], ids: ProducerIdManager) -> None:
        self._shards = shards
        self._ids = ids
        # Shards whose producer ids are not known yet, as they are still being loaded.
        self._unread = {
            shard for shard in shards if shard.log.coordinator_state is CoordinatorState.LOADING
        }

    def skip_ids_of(self, transaction: TransactionMetadata) -> None:
        """Skip all ids up to those that a transactional id has."""
        self._ids.skip_ids_up_to(max(transaction.producer_id, transaction.next_producer_id))

    def mark_loaded(self, shard: TransactionShard) -> None:
        """Note that a shard is loaded, whose transactions' producer ids are not given out again."""
        self._unread.discard(shard)

    def generate_producer_id(self) -> ProducerId:
        """Return a producer id that nobody has had.

        Raises: Refused (COORDINATOR_LOAD_IN_PROGRESS).
        """
        if self._unread:
            raise Refused(Code.COORDINATOR_LOAD_IN_PROGRESS, "the producer ids are being loaded")
        if not self._ids.has_allocated_ids:
            for shard in self._shards:
                if shard.log.coordinator_state is CoordinatorState.FAILED:
                    raise Refused(
                        Code.COORDINATOR_LOAD_IN_PROGRESS,
                        f"no producer ids: only {shard.log.name}, which has failed, knows which "
                        "have been given",
                    )
        return self._ids.generate_producer_id()

    def generate_if_exhausted(self, transaction: TransactionMetadata, version: int) -> ProducerId:
        """Return a new producer id if this transaction's end uses up the last epoch, else -1."""
        return (
            self.generate_producer_id()
            if needs_new_producer_id(transaction, version)
            else NO_PRODUCER_ID
        )
