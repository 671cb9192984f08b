"""Check stores as in other histories, where a store may be rebuilt after days that passed."""

from __future__ import annotations

from tests.simulation.runtime.checkers.stores import Stores
from tests.simulation.runtime.days.scenario import OLD_TIMES
from tests.simulation.runtime.machine import Database


class KeptStores(Stores):
    """Checks that a store equals its changelog, which has all records although days passed.

    A store that was not written for longer than its changelog keeps deletions is emptied and
    rebuilt. Windows and versions that have expired are swept a little at a time: their results are
    checked.
    """

    def handle_clear(self, database: Database) -> None:
        self.handle_deletion(database)

    def check_at_rest(self) -> None:
        if self.world.runtime.kind not in OLD_TIMES:
            super().check_at_rest()
