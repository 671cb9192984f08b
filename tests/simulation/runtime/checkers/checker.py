"""Define the events of the runtime's checkers, in addition to those of the broker's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.checkers.checker import Checker
from tests.simulation.runtime.machine import Database

if TYPE_CHECKING:
    from tests.simulation.runtime.world import RuntimeWorld


class RuntimeChecker(Checker):
    """Ignores all events; a checker overrides those that it needs."""

    world: RuntimeWorld

    def handle_write(self, database: Database) -> None:
        """Handle a write of data and checkpoint to a store."""

    def handle_deletion(self, database: Database) -> None:
        """Handle the deletion of a store."""

    def handle_clear(self, database: Database) -> None:
        """Handle a store that is about to be emptied."""
