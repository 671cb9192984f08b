"""Check that decided transactions and deletions of topics are complete in the end.

No transaction stays prepared; no group has offsets of a deleted topic, and no deleted name is kept.
"""

from __future__ import annotations

from typing import ClassVar

from coordinator.broker import Broker
from coordinator.transactions.state import PREPARED
from tests.simulation.checkers.checker import Checker


class Completed(Checker):
    name: ClassVar[str] = "completed"

    def check_at_rest(self) -> None:
        broker = self.world.broker
        for index, shard in enumerate(broker.coordinators.groups.shards):
            if shard.deleted_topics:
                self.violated(f"__consumer_offsets-{index} has {shard.deleted_topics} to forget")
        if names := list(broker.topics.forgetting):
            self.violated(f"the names of {names} are not free after their deletion")
        if prepared := prepared_transactions(broker):
            self.violated(f"{prepared} were decided, and are not carried out")


def prepared_transactions(broker: Broker) -> list[str]:
    """Return the transactional ids whose transaction is decided but not completed."""
    return [
        name
        for shard in broker.coordinators.transactions.shards
        for name, transaction in shard.state.transactions.items()
        if transaction.status in PREPARED
    ]
