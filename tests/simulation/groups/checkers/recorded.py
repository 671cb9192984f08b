"""Check that a classic group, Stable or Empty, equals its record, so that restarts lose nothing.

A rebalance between the two states may be lost with the broker, as in Kafka.
"""

from __future__ import annotations

from typing import ClassVar

from coordinator.groups.classic.state import ClassicGroupPhase
from tests.simulation.groups.checkers.checker import GroupChecker


class Recorded(GroupChecker):
    name: ClassVar[str] = "recorded"

    def handle_crash(self) -> None:
        self.run_expensive_checks()

    def run_expensive_checks(self) -> None:
        for shard in self.world.broker.coordinators.groups.shards:
            for group_id, group in shard.state.classic.items():
                saved = shard.state.groups.get(group_id)
                if group.phase not in (ClassicGroupPhase.STABLE, ClassicGroupPhase.EMPTY):
                    continue
                if saved is None and group.generation == 0:  # nobody has joined it yet
                    continue
                if group.to_record() != saved:
                    self.violated(f"{group_id} is {group.to_record()}, and its record {saved}")

    def check_at_rest(self) -> None:
        self.run_expensive_checks()
