"""Check that a broker loaded from the disk has the same state as the one that wrote it.

That is groups, offsets, transactions, and each partition's state of its producers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from coordinator.broker import Broker
from coordinator.groups.shard import GroupShard
from coordinator.log.partition import PartitionLog
from coordinator.shard.coordinator_state import CoordinatorState
from tests.simulation.checkers.checker import Checker
from tests.simulation.checkers.completed import prepared_transactions


class Reload(Checker):
    name: ClassVar[str] = "reload"

    def run_expensive_checks(self) -> None:
        """Compare the states, unless loading would complete a decided transaction."""
        live = self.world.broker
        if prepared_transactions(live):
            return
        twin = self.world.load_copy()
        if self.world.setting.days:
            # Loading reads of producers that are forgotten; the next check forgets them again.
            for broker in (live, twin):
                forget_idle_producers(broker)
        facts, loaded = (facts_of(b, expires=self.world.setting.days) for b in (live, twin))
        # A shard that another broker leads now is empty here.
        for index, shard in enumerate(live.coordinators.groups.shards):
            if shard.log.coordinator_state is not CoordinatorState.ACTIVE:
                facts |= _group_facts(index, twin.coordinators.groups.shards[index])
        # A compaction that is decided, and not yet carried out, is carried out by loading.
        replacing = {
            f"{topic.name}-{partition.index}"
            for topic in live.topics
            for partition in topic.partitions
            if partition.compaction.is_replacing
        }
        # So are deletions of offsets of deleted topics, which wait for their shard.
        forgetting = tuple(
            f"__consumer_offsets-{index}"
            for index, shard in enumerate(live.coordinators.groups.shards)
            if shard.deleted_topics
        )
        self._compare(
            *(
                {
                    name: fact
                    for name, fact in each.items()
                    if name not in replacing and name.partition(" ")[0] not in forgetting
                }
                for each in (facts, loaded)
            )
        )

    def check_at_rest(self) -> None:
        self.run_expensive_checks()

    def _compare(self, live: dict[str, Any], loaded: dict[str, Any]) -> None:
        for name in sorted(live.keys() | loaded.keys()):
            if live.get(name) != loaded.get(name):
                self.violated(
                    f"{name} is {live.get(name)}, and when it is loaded {loaded.get(name)}"
                )


def forget_idle_producers(broker: Broker) -> None:
    """Forget the producers that have expired, as the broker's check does."""
    now_ms, idle_ms = broker.clock.now_ms(), broker.config.producer_id_expiration_ms
    for partition in broker.topics.list_all_partitions():
        partition.producers.forget_idle_producers(now_ms, idle_ms)


def facts_of(broker: Broker, *, expires: bool = False) -> dict[str, Any]:
    """Return all that must be the same after a restart, by name.

    `expires`: of a producer that was forgotten and came back, a loaded broker knows batches from
    before that as well, so that only its last epoch and time count.
    """
    coordinators = broker.coordinators
    facts: dict[str, Any] = {}
    for index, group_shard in enumerate(coordinators.groups.shards):
        facts |= _group_facts(index, group_shard)
    for index, shard in enumerate(coordinators.transactions.shards):
        facts[f"__transaction_state-{index}"] = shard.state.transactions
    for name in ("__consumer_offsets", "__transaction_state", *(t.name for t in broker.topics)):
        topic = broker.topics.find_including_hidden(name)
        for partition in topic.partitions if topic else ():
            facts[f"{name}-{partition.index}"] = _partition(partition, expires=expires)
    return facts


def _group_facts(index: int, shard: GroupShard) -> dict[str, Any]:
    return {
        f"__consumer_offsets-{index} committed": shard.state.offsets.committed,
        f"__consumer_offsets-{index} pending": shard.state.offsets.pending,
        f"__consumer_offsets-{index} classic groups": shard.state.classic.keys(),
        f"__consumer_offsets-{index} consumer groups": shard.state.consumer,
    }


def _partition(partition: PartitionLog, *, expires: bool) -> dict[str, Any]:
    producers = partition.producers
    known = dict(producers._known)
    last = {each: (entry.epoch, entry.last_timestamp_ms) for each, entry in known.items()}
    return {
        "start": partition.start_offset,
        "end": partition.end_offset,
        "stable": partition.last_stable_offset,
        "open": [
            (producer_id, first_offset)
            for producer_id, _, first_offset in producers.iterate_producers()
            if first_offset >= 0
        ],
        "producers": last if expires else known,
        "aborted": partition.find_aborted_transactions(0, partition.end_offset + 1),
    }
