"""Check that a classic group, Stable or Empty, equals its record, so that restarts lose nothing.

A rebalance between the two states may be lost with the broker, as in Kafka.
"""

from __future__ import annotations

from typing import ClassVar

from coordinator.groups.classic.state import ClassicGroupPhase
from tests.simulation.groups.checkers.checker import GroupChecker


class Recorded(GroupChecker):
    name: ClassVar[str] = "recorded"

    def run_expensive_checks(self) -> None:
        """Compare the groups with those of a broker that is loaded from a copy of the disk."""
        live = self.world.broker.coordinators.groups.shards
        loaded = self.world.load_copy().coordinators.groups.shards
        for shard, loaded_shard in zip(live, loaded, strict=True):
            for group_id, group in shard.state.classic.items():
                if group.phase not in (ClassicGroupPhase.STABLE, ClassicGroupPhase.EMPTY):
                    continue
                loaded_group = loaded_shard.state.classic.get(group_id)
                saved = None if loaded_group is None else loaded_group.to_record()
                if group.to_record() != saved:
                    self.violated(f"{group_id} is {group.to_record()}, and its record {saved}")

    def check_at_rest(self) -> None:
        self.run_expensive_checks()
