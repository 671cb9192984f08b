"""From a scenario to what became of it: runs a world through its steps, and brings it to rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from zlib import crc32

from tests.simulation.steps import Scenario
from tests.simulation.world import Violation, World, quiet

Bug = Callable[[World], AbstractContextManager[None]]

SHRINKING_RUNS = 120


def no_bug(world: World) -> AbstractContextManager[None]:
    return nullcontext()


class History(ABC):
    """One run of a scenario. What happens in it, and when it is at rest, is the kind's to say."""

    def __init__(self, world: World, bug: Bug) -> None:
        self.world = world
        self._bug = bug

    @abstractmethod
    def _run(self) -> None:
        """From the start to the last check. Raises Violation."""

    def run(self) -> Violation | None:
        """What was violated, if anything was."""
        quiet()
        with self._bug(self.world):
            try:
                self._run()
            except Violation as violation:
                return violation
            except Exception as error:
                return Violation("client", f"{type(error).__name__}: {error}")
            finally:
                self._leave()
        return None

    def _leave(self) -> None:
        """Nothing of this world goes on."""
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
        """Equal for two runs that were the same in every request, answer and time."""
        return crc32("\n".join(self.world.trace).encode())


def shortest(
    make: Callable[[Any, Bug], History],
    scenario: Scenario[Any, Any],
    violation: Violation,
    bug: Bug,
) -> Scenario[Any, Any]:
    """The scenario with as few of its steps as still violate the same law, found in a bounded
    number of runs: ever smaller pieces are left out, and stay out if it fails without them."""
    runs = 0
    size = max(1, len(scenario.steps) // 2)
    while True:
        start = 0
        shrunk = False
        while start < len(scenario.steps) and runs < SHRINKING_RUNS:
            runs += 1
            shorter = scenario.without(start, start + size)
            found = make(shorter, bug).run()
            if found is not None and found.checker == violation.checker:
                scenario, shrunk = shorter, True
            else:
                start += size
        if runs >= SHRINKING_RUNS or (size == 1 and not shrunk):
            return scenario
        size = max(1, size // 2)


def verdict(
    make: Callable[[Any, Bug], History], scenario: Scenario[Any, Any], bug: Bug = no_bug
) -> str:
    """Nothing, or what failed, with the shortest history found. `make` makes the history."""
    violation = make(scenario, bug).run()
    if violation is None:
        return ""
    short = shortest(make, scenario, violation, bug)
    return (
        f"seed {scenario.seed}: {violation}\n"
        f"the shortest history found, {len(short.steps)} of {len(scenario.steps)} steps, violates "
        f"{make(short, bug).run()}\n{short}"
    )
