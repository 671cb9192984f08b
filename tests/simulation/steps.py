"""Define a history before it runs: a seed, a setting, and steps with their own randomness.

So a history with some steps left out is still one: that is how a failure is made short. A step
comes `gap_ms` after the one before, whatever is still running. What each kind of history can
suffer stands here: the broker's end, its disk, and the expensive checks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Generic, TypeAlias, TypeVar

from tests.simulation.world import World

S = TypeVar("S")
A = TypeVar("A")


DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Crash:
    """Represents a crash of the broker: at once, or within the nth change of the disk."""

    in_changes: int
    power: bool
    down_ms: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Represents a clean stop of the broker, which flushes everything."""

    down_ms: int


@dataclass(frozen=True, slots=True)
class BadDisk:
    """Represents a bad disk: some of the next writes to logs and flushes fail, perhaps in part."""

    writes: int


@dataclass(frozen=True, slots=True)
class Look:
    """Represents a step that runs the expensive checks."""


@dataclass(frozen=True, slots=True)
class PassDays:
    """Represents days that pass by the wall clock, once all is at rest, if that comes."""

    days: int


Fault: TypeAlias = Crash | Stop | BadDisk | Look


def crash(random: Random, *, flushes: bool) -> Crash:
    """Return a crash, which is a loss of power only where every append is flushed.

    Else what is acknowledged may be lost.
    """
    power = flushes and random.random() < 0.6
    return Crash(random.choice((0, 1, 2, 3, 5, 9)), power, random.choice((10, 300, 2_000)))


def inject_fault(world: World, fault: Fault) -> None:
    match fault:
        case Crash(in_changes, power, down_ms):
            world.crash(down_ms, in_changes, power=power)
        case Stop(down_ms):
            world.stop(down_ms)
        case BadDisk(writes):
            world.disk.failing = writes
        case Look():
            world.run_expensive_checks()


@dataclass(frozen=True, slots=True)
class Step(Generic[A]):
    gap_ms: int
    action: A


@dataclass(frozen=True, slots=True)
class Scenario(Generic[S, A]):
    """Represents one history to be run."""

    seed: int
    setting: S
    steps: tuple[Step[A], ...]

    def without_steps(self, start: int, end: int) -> Scenario[S, A]:
        return replace(self, steps=self.steps[:start] + self.steps[end:])

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {self.setting}"]
        at_ms = 0
        for step in self.steps:
            at_ms += step.gap_ms
            lines.append(f"  {at_ms:6d} ms  {step.action}")
        return "\n".join(lines)
