"""What a checker of the runtime may listen to, beside what the broker's can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.checkers.checker import Checker
from tests.simulation.runtime.machine import Database

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld


class RuntimeChecker(Checker):
    """Does nothing at all; a checker overrides what it needs."""

    world: RuntimeWorld

    def written(self, database: Database) -> None:
        """Data and checkpoint have come to a store."""

    def lost(self, database: Database) -> None:
        """Somebody has deleted a store."""

    def cleared(self, database: Database) -> None:
        """A store is about to be emptied."""
