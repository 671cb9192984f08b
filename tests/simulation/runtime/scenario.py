"""Setting and steps that a seed stands for: input, and what happens to workers and broker."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from streams.runtime.commit import Step as CommitStep
from tests.simulation.runtime.process import Blockade
from tests.simulation.runtime.world import RuntimeSetting
from tests.simulation.steps import BadDisk, Fault, Scenario, Step, Stop, crash
from tests.simulation.world import Setting


@dataclass(frozen=True, slots=True)
class Feed:
    """Records for the input."""

    count: int
    seed: int


@dataclass(frozen=True, slots=True)
class Kill:
    """kill -9 of a worker: now, at a step of one of its next commits, or within a store's write."""

    worker: int
    at: CommitStep | None = None
    times: int = 1
    in_write: int = -1
    back_after_ms: int = -1


@dataclass(frozen=True, slots=True)
class Start:
    worker: int


@dataclass(frozen=True, slots=True)
class Leave:
    """SIGTERM."""

    worker: int


@dataclass(frozen=True, slots=True)
class Freeze:
    """SIGSTOP, and SIGCONT after a time."""

    worker: int
    for_ms: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Requests, or answers, of a worker don't get through for a time."""

    worker: int
    what: Blockade
    for_ms: int


@dataclass(frozen=True, slots=True)
class Wait:
    for_ms: int


Action: TypeAlias = Feed | Kill | Start | Leave | Freeze | Cut | Wait | Fault
RuntimeScenario: TypeAlias = Scenario[RuntimeSetting, Action]


def scenario(seed: int, length: int = 40) -> RuntimeScenario:
    """The scenario of a seed."""
    random = Random(f"{seed} runtime")
    setting = RuntimeSetting(
        world=Setting(
            trouble=random.choice((0.0, 0.0, 0.01, 0.05)),
            transaction_timeout_ms=random.choice((1_500, 4_000)),
        ),
        kind=random.choice(("copy", "count", "count", "collect", "collect", "regroup", "regroup")),
        caching=random.random() < 0.5,
        persistent=random.random() < 0.85,
        workers=random.choice((2, 2, 3)),
        threads=random.choice((1, 1, 2)),
        together=random.random() < 0.3,
        guarantee=random.choice(("exactly_once_v2", "exactly_once_v2", "exactly_once")),
        commit_interval_ms=random.choice((20, 100, 100, 400)),
        session_timeout_ms=random.choice((1_000, 1_500)),
        slow_markers=random.choice((0.0, 0.1, 0.5)),
        preemption=random.choice((0.0, 0.02, 0.1)),
    )
    steps = tuple(
        Step(random.choice((0, 20, 100, 300, 800)), _action(random, setting)) for _ in range(length)
    )
    return Scenario(seed, setting, steps)


def _action(random: Random, setting: RuntimeSetting) -> Action:
    chance = random.random()
    worker = random.randrange(setting.workers)
    back_after_ms = random.choice((-1, 10, 10, 300, 2_000))
    if chance < 0.45:
        return Feed(random.randint(1, 12), random.getrandbits(32))
    if chance < 0.51:
        return Kill(worker, back_after_ms=back_after_ms)
    if chance < 0.57:
        at, times = random.choice(tuple(CommitStep)), random.randint(1, 3)
        return Kill(worker, at, times, back_after_ms=back_after_ms)
    if chance < 0.60:
        return Kill(worker, in_write=random.randrange(3), back_after_ms=back_after_ms)
    if chance < 0.72:
        return Start(worker)
    if chance < 0.75:
        return Leave(worker)
    if chance < 0.82:
        return Freeze(worker, random.choice((200, 1_200, 3_000, 5_000)))
    if chance < 0.88:
        what = random.choice((Blockade.REQUESTS, Blockade.ANSWERS))
        return Cut(worker, what, random.choice((300, 1_500, 4_000)))
    if chance < 0.92:
        return Wait(random.choice((1_000, 3_000)))
    if chance < 0.97:
        return crash(random, flushes=False)
    if chance < 0.98:
        return Stop(random.choice((10, 300, 2_000)))
    return BadDisk(random.choice((2, 5)))
