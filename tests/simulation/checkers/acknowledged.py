"""Check that every acknowledged batch stays at its offset after each crash and at the end."""

from __future__ import annotations

from typing import ClassVar

from tests.simulation.checkers.checker import Checker


class Acknowledged(Checker):
    name: ClassVar[str] = "acknowledged"

    def handle_load(self) -> None:
        for batch in self.world.ledger.acknowledged:
            truth = self.world.truths[batch.place].by_offset
            for number, value in enumerate(batch.values):
                entry = truth.get(batch.base_offset + number)
                if entry is None or entry.value != value:
                    found = "nothing" if entry is None else entry.value
                    self.violated(
                        f"{batch.place}: {value!r} was acknowledged at "
                        f"{batch.base_offset + number}, where {found!r} is"
                    )

    def check_at_rest(self) -> None:
        self.handle_load()
