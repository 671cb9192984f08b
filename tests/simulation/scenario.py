"""Make a scenario of producers, transactions, readers, and faults from a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from tests.simulation.steps import BadDisk, Fault, Look, PassDays, Scenario, Step, Stop, crash
from tests.simulation.world import Setting

PRODUCERS, WRITERS, COPIERS = 2, 2, 2


@dataclass(frozen=True, slots=True)
class Produce:
    """Represents a step that produces batches without transactions."""

    producer: int
    partition: int
    batches: int
    seed: int


@dataclass(frozen=True, slots=True)
class Transact:
    """Represents a writer's transaction, which pauses before one of its writes or its end."""

    writer: int
    writes: int
    commits: bool
    pause_ms: int
    seed: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Represents a step with a transaction of a copier."""

    copier: int
    commits: bool
    pause_ms: int
    seed: int


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Represents a step that hands a transactional id to a new producer; the old one isn't told."""

    name: str


@dataclass(frozen=True, slots=True)
class Read:
    """Represents a step in which each reader fetches."""

    max_wait_ms: int
    seed: int


Action: TypeAlias = Produce | Transact | Copy | TakeOver | Read | PassDays | Fault


TransactionScenario: TypeAlias = Scenario[Setting, Action]


def scenario(seed: int, length: int = 60, *, days: bool = False) -> TransactionScenario:
    """Return the scenario of a seed; with `days`, some pass in one of fifteen steps."""
    random = Random(seed)
    setting = Setting(
        trouble=random.choice((0.0, 0.03, 0.1, 0.2)),
        flushes=random.random() < 0.25,
        compacts=random.random() < 0.5,
        segment_bytes=random.choice((700, 2_000, 1_048_576)),
        transaction_timeout_ms=random.choice((1_500, 4_000)),
        transactions=random.choice(("v1", "v2", "mixed")),
    )
    steps = tuple(
        Step(random.choice((0, 5, 20, 60, 200)), _action(random, setting)) for _ in range(length)
    )
    if not days:
        return Scenario(seed, setting, steps)
    random = Random(f"{seed} days")
    some: list[Step[Action]] = list(steps)
    for place in sorted(random.sample(range(length), length // 15), reverse=True):
        some.insert(place, Step(0, PassDays(random.choice((1, 2, 8)))))
    return Scenario(seed, replace(setting, days=True), tuple(some))


def _action(random: Random, setting: Setting) -> Action:
    chance = random.random()
    seed = random.getrandbits(32)
    pause_ms = random.choice((0, 0, 0, 20, 300, 2_000, 6_000))
    commits = random.random() < 0.75
    if chance < 0.20:
        return Produce(random.randrange(PRODUCERS), random.randrange(2), random.randint(1, 7), seed)
    if chance < 0.44:
        writes = random.randint(1, 4)
        return Transact(random.randrange(WRITERS), writes, commits, pause_ms, seed)
    if chance < 0.66:
        return Copy(random.randrange(COPIERS), commits, pause_ms, seed)
    if chance < 0.73:
        return TakeOver(f"{random.choice(('writer', 'copier'))}-{random.randrange(2)}")
    if chance < 0.89:
        return Read(random.choice((0, 200, 700)), seed)
    if chance < 0.93:
        return crash(random, flushes=setting.flushes)
    if chance < 0.94:
        return Stop(random.choice((10, 300, 2_000)))
    if chance < 0.97:
        return BadDisk(random.choice((2, 5, 12, 30)))
    return Look()
