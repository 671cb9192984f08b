"""Check that a copy of a global table equals its topic up to the table's position.

That holds at each of its writes until one is torn; at the end it is the whole topic. It is emptied
only where it was damaged.
"""

from __future__ import annotations

from typing import ClassVar

from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.machine import Database

TIME_BYTES = 8


class Globals(RuntimeChecker):
    name: ClassVar[str] = "globals"

    def handle_write(self, database: Database) -> None:
        if database.is_global and not database.is_torn:
            assert database.checkpoint is not None
            self._check(database, database.checkpoint.positions)

    def handle_clear(self, database: Database) -> None:
        if database.is_global and not database.is_corrupt:
            self.violated(f"{database.path} is emptied, and nothing was wrong with it")

    def check_at_rest(self) -> None:
        for database in self.world.databases:
            if database.is_global and database.is_open:
                parts = sorted(p for p in self.world.truths if p[0] == database.path.name)
                self._check(database, [self.world.truths[part].end_offset for part in parts])

    def _check(self, database: Database, positions: list[int] | tuple[int, ...]) -> None:
        """Compare a copy with its topic, which has the name of the store."""
        wanted: dict[bytes, bytes] = {}
        for number, position in enumerate(positions):
            truth = self.world.truths[database.path.name, number]
            for entry in truth.committed(position):
                wanted[entry.key or b""] = entry.value
        wanted = {key: value for key, value in wanted.items() if value}
        found = {key: value[TIME_BYTES:] for key, value in database.data.items()}
        if found != wanted:
            self.violated(
                f"{database.path} is {found}, and its topic up to {list(positions)} is {wanted}"
            )
