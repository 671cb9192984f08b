"""Check what days that pass leave of a group: all of one that lives, nothing of one that is empty.

A group at rest keeps its members, and the offsets of what they own, however long ago these were
committed. An empty one loses its offsets, and is deleted, once it was empty for the retention.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from coordinator.shard.coordinator_state import CoordinatorState
from tests.simulation.groups.checkers.checker import GroupChecker
from tests.simulation.groups.scenario import DAYS_KEPT
from tests.simulation.groups.settled import find_unrest
from tests.simulation.ledger import Place


class Kept(GroupChecker):
    name: ClassVar[str] = "kept"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._owned: dict[str, dict[str, list[Place]]] = {}
        """The committed partitions of each member, by group at rest and member id."""
        self._empty: set[str] = set()
        self._life = 0

    def begin_days(self) -> None:
        """Note what there is before days pass."""
        self._owned.clear()
        self._empty.clear()
        self._life = self.world.life
        for group_id in self._list_groups():
            living = self.world.find_living(group_id)
            committed = self._find_committed(group_id)
            if not living and not self._find_members(group_id):
                self._empty.add(group_id)
            elif living and not find_unrest(self.world, group_id):
                self._owned[group_id] = {
                    member.member_id: sorted(member.owned.keys() & committed) for member in living
                }

    def end_days(self, days: int) -> None:
        """Check it once the days have passed, and the broker has looked for what has expired."""
        for group_id in self._list_groups():
            committed = self._find_committed(group_id)
            for member_id, places in self._owned.get(group_id, {}).items():
                if member_id not in self._find_members(group_id):
                    self.violated(f"{group_id}: {member_id} is no member after {days} days")
                if gone := [each for each in places if each not in committed]:
                    self.violated(f"{group_id}: {gone} of {member_id} expired in {days} days")
            if group_id in self._empty and days > DAYS_KEPT and committed:
                self.violated(f"{group_id}: empty for {days} days, it has {sorted(committed)}")

    def _list_groups(self) -> Iterator[str]:
        """Yield the groups whose coordinator has worked since before the days."""
        world = self.world
        if world.is_listening and world.life == self._life:
            for group_id in world.group_ids:
                if world.shard(group_id).log.coordinator_state is CoordinatorState.ACTIVE:
                    yield group_id

    def _find_members(self, group_id: str) -> set[str]:
        state = self.world.shard(group_id).state
        group = state.consumer.get(group_id) or state.classic.get(group_id)
        return set() if group is None else {*group.members}

    def _find_committed(self, group_id: str) -> set[Place]:
        return {*self.world.shard(group_id).state.offsets.committed.get(group_id, ())}
