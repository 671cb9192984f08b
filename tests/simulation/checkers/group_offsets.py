"""Check that a group's committed offset is exactly what its committed transactions have written."""

from __future__ import annotations

from typing import ClassVar

from coordinator.transactions.state import PREPARED
from tests.simulation.checkers.checker import Checker
from tests.simulation.checkers.exactly_once import copied_offsets
from tests.simulation.clients.copier import GROUP
from tests.simulation.world import TOPICS


class GroupOffsets(Checker):
    name: ClassVar[str] = "group_offsets"

    def run_expensive_checks(self) -> None:
        """Compare offsets and output, unless a transaction is being completed meanwhile."""
        coordinators = self.world.broker.coordinators
        for index in range(TOPICS["input"]):
            transaction = coordinators.transactions.find_transaction(f"copier-{index}")
            if transaction is None or transaction.status not in PREPARED:
                self._check(index)

    def check_at_rest(self) -> None:
        for index in range(TOPICS["input"]):
            self._check(index)

    def _check(self, index: int) -> None:
        committed = {
            place: [entry.value for entry in truth.entries if entry.committed]
            for place, truth in self.world.truths.items()
        }
        copied = copied_offsets(committed, index)
        [found] = self.world.broker.coordinators.groups.offsets.fetch_offsets(
            GROUP, [("input", index, None)], require_stable=False
        )
        if max(found.offset, 0) != len(copied):
            self.violated(
                f"input-{index} is committed to {found.offset}, and copied to {len(copied)}"
            )
