"""Run a world through the steps of a scenario, bring it to rest, and return the outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any
from zlib import crc32

from tests.simulation.steps import Scenario
from tests.simulation.world import Violation, World, silence_broker_log

Bug = Callable[[World], AbstractContextManager[None]]

SHRINKING_RUNS = 120


def no_bug(world: World) -> AbstractContextManager[None]:
    return nullcontext()


class History(ABC):
    """Represents one run of a scenario; subclasses do the steps and bring it to rest."""

    def __init__(self, world: World, bug: Bug) -> None:
        self.world = world
        self._bug = bug

    @abstractmethod
    def _run(self) -> None:
        """Run from the start to the last check.

        Raises Violation.
        """

    def run(self) -> Violation | None:
        """Run the history and return the violation, if there was one.

        A bug that can't be planted raises what is in its way: that is no violation.
        """
        silence_broker_log()
        with ExitStack() as planted:
            try:
                planted.enter_context(self._bug(self.world))
                return self._find_violation()
            finally:
                self._leave()

    def _find_violation(self) -> Violation | None:
        try:
            self._run()
        except Violation as violation:
            return violation
        except Exception as error:
            return Violation("client", f"{type(error).__name__}: {error}")
        return None

    def _leave(self) -> None:
        """Stop everything in this world."""
        world = self.world
        world.checkers = []
        world.is_listening = False
        world.life += 1
        world.abandon()
        for connection in tuple(world.connections):
            connection.cut()
        self._advance(0)

    def _advance(self, ms: float, is_enough: Callable[[], bool] = lambda: False) -> None:
        self.world.loop.run_until(self.world.loop.elapsed_ms + ms, is_enough)

    @property
    def fingerprint(self) -> int:
        """Return a hash that is equal for two runs with the same requests, responses and times."""
        return crc32("\n".join(self.world.trace).encode())


def shorten_scenario(
    make: Callable[[Any, Bug], History],
    scenario: Scenario[Any, Any],
    violation: Violation,
    bug: Bug,
) -> Scenario[Any, Any]:
    """Return the scenario with as few steps as still violate the same invariant.

    The number of runs is bounded: ever smaller pieces are left out, and stay out if it fails
    without them.
    """
    runs = 0
    size = max(1, len(scenario.steps) // 2)
    while True:
        start = 0
        shrunk = False
        while start < len(scenario.steps) and runs < SHRINKING_RUNS:
            runs += 1
            shorter = scenario.without_steps(start, start + size)
            found = make(shorter, bug).run()
            if found is not None and found.checker == violation.checker:
                scenario, shrunk = shorter, True
            else:
                start += size
        if runs >= SHRINKING_RUNS or (size == 1 and not shrunk):
            return scenario
        size = max(1, size // 2)


def find_failure(
    make: Callable[[Any, Bug], History], scenario: Scenario[Any, Any], bug: Bug = no_bug
) -> str:
    """Return what failed, with the shortest history found, or nothing.

    `make` makes the history.
    """
    violation = make(scenario, bug).run()
    if violation is None:
        return ""
    short = shorten_scenario(make, scenario, violation, bug)
    return (
        f"seed {scenario.seed}: {violation}\n"
        f"the shortest history found, {len(short.steps)} of {len(scenario.steps)} steps, violates "
        f"{make(short, bug).run()}\n{short}"
    )
