"""Check that the output of an application of `applications` is what its model says."""

from __future__ import annotations

from typing import ClassVar

from tests.simulation.runtime.checkers.checker import RuntimeChecker


class Results(RuntimeChecker):
    name: ClassVar[str] = "results"

    def check_at_rest(self) -> None:
        world = self.world
        if world.application is None or not world.runtime.is_exactly_once:
            return
        if problem := world.application.problem(world):
            self.violated(problem)
