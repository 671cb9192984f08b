"""Check that every group comes to rest in time when nothing goes wrong any more.

All live members are in it, each partition that somebody wants has exactly one owner, and nothing
changes after that.
"""

from __future__ import annotations

from typing import ClassVar

from tests.simulation.groups.checkers.checker import GroupChecker
from tests.simulation.groups.settled import unsettled


class Convergence(GroupChecker):
    name: ClassVar[str] = "convergence"

    def check_at_rest(self) -> None:
        missing = unsettled(self.world)
        if missing:
            self.violated(missing)
