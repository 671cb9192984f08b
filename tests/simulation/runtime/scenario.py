"""Make a scenario of input, and of what happens to workers and broker, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

from coordinator.errors import Code
from streams.runtime.threads.commit import CommitStep as CommitStep
from streams.runtime.threads.thread_state import ThreadState
from tests.simulation.runtime.applications import APPLICATIONS
from tests.simulation.runtime.process import Blockade, Process
from tests.simulation.runtime.worker import JOINING
from tests.simulation.runtime.world import RuntimeSetting
from tests.simulation.steps import BadDisk, Crash, Fault, Scenario, Step, Stop, crash
from tests.simulation.world import Setting

AWAY = (Code.NOT_COORDINATOR, Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE)
Moment: TypeAlias = CommitStep | str | None
"""A step of a commit, a state of the thread, when it is about to join, or now."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Represents a step that writes records to the input."""

    count: int
    seed: int


@dataclass(frozen=True, slots=True)
class Kill:
    """Represents a kill -9 of a worker: now, at a step of a commit, or within its next write."""

    worker: int
    at: Moment = None
    in_write: int = -1
    back_after_ms: int = -1


@dataclass(frozen=True, slots=True)
class Start:
    worker: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Represents a step that stops a worker as SIGTERM does."""

    worker: int


@dataclass(frozen=True, slots=True)
class Freeze:
    """Represents SIGSTOP, now or at a step of the next commit, and SIGCONT after a time."""

    worker: int
    for_ms: int
    at: Moment = None

    def happen_to(self, process: Process) -> None:
        process.freeze(self.for_ms)


@dataclass(frozen=True, slots=True)
class Cut:
    """Represents a step that blocks a worker's requests, or the responses, for a time."""

    worker: int
    what: Blockade
    for_ms: int
    at: Moment = None

    def happen_to(self, process: Process) -> None:
        process.block(self.what, self.for_ms)


@dataclass(frozen=True, slots=True)
class LoseCoordinator:
    """Represents a step in which the coordinator is not available to a worker's membership."""

    worker: int
    code: Code
    for_ms: int
    at: Moment = None

    def happen_to(self, process: Process) -> None:
        process.lose_coordinator(self.code, self.for_ms)


@dataclass(frozen=True, slots=True)
class SilenceCoordinator:
    """Represents a step that silences the transaction coordinator of one task for a time.

    It is of a task of the input that has a producer of its own.
    """

    partition: int
    for_ms: int


@dataclass(frozen=True, slots=True)
class Damage:
    """Represents a step that makes a store on a worker's machine unreadable, or deletes it."""

    worker: int
    seed: int


@dataclass(frozen=True, slots=True)
class Wait:
    for_ms: int


Action: TypeAlias = (
    Feed
    | Kill
    | Start
    | Leave
    | Freeze
    | Cut
    | LoseCoordinator
    | SilenceCoordinator
    | Damage
    | Wait
    | Fault
)
GUARANTEES = (*["exactly_once_v2"] * 5, *["exactly_once"] * 3, "at_least_once")
KINDS = ("copy", "count", "count", "collect", "collect", "tick", "tick", "regroup", "regroup")
RuntimeScenario: TypeAlias = Scenario[RuntimeSetting, Action]


def scenario(
    seed: int, length: int = 40, focus: str | None = None, **given: Any
) -> RuntimeScenario:
    """Return the scenario of a seed, with all faults or with those of one `focus` or story.

    Every second seed has all faults. `given` are fields of the setting.
    """
    random = Random(f"{seed} runtime")
    if focus is None and seed % 2:
        focus = random.choice((*FOCUSES, *STORIES))
    chosen = RuntimeSetting(
        world=Setting(
            trouble=random.choice((0.0, 0.0, 0.01, 0.05)),
            transaction_timeout_ms=random.choice((1_500, 4_000)),
        ),
        kind=random.choice(KINDS),
        caching=random.random() < 0.5,
        persistent=random.random() < 0.85,
        workers=random.choice((2, 2, 3)),
        threads=random.choice((1, 1, 2)),
        together=random.random() < 0.3,
        guarantee=random.choice(GUARANTEES),
        commit_interval_ms=random.choice((20, 100, 100, 400)),
        session_timeout_ms=random.choice((1_000, 1_500, 6_000)),
        max_poll_interval_ms=random.choice((1_000, 4_000)),
        slow_markers=random.choice((0.0, 0.1, 0.5)),
        unsteady=random.choice((0.0, 0.0, 0.5)),
        preemption=random.choice((0.0, 0.02, 0.1)),
    )
    setting = replace(chosen, **given)
    if setting.ledger and not setting.is_exactly_once:  # without transactions there is none
        setting = replace(setting, guarantee="exactly_once_v2")
    if setting.is_exactly_once and "switches" not in given:
        setting = replace(setting, switches=random.random() < 0.2)
    if setting.kind in APPLICATIONS and "late_partitions" not in given:
        late = Random(f"{seed} late partitions").choice((0.0, 0.0, 0.3, 0.7))
        setting = replace(setting, late_partitions=late)
    # `installed` names standbys as the leader does, and versions of "lines" number tasks otherwise.
    if setting.kind != "lines" and "standbys" not in given:
        standbys = Random(f"{seed} standbys of tasks").choice((0.0, 0.0, 0.3, 0.7))
        setting = replace(setting, standbys=standbys)
    if focus in STORIES or focus in NAMED_STORIES:
        story = (STORIES | NAMED_STORIES)[focus]
        return Scenario(seed, setting, tuple(story(random)))
    steps = tuple(
        Step(random.choice((0, 20, 100, 300, 800)), _action(random, setting, focus))
        for _ in range(length)
    )
    return Scenario(seed, setting, steps)


def _action(random: Random, setting: RuntimeSetting, focus: str | None) -> Action:
    worker = random.randrange(setting.workers)
    if random.random() < 0.45:
        return _feed(random)
    if random.random() < 0.15:
        return Start(worker)
    return (_any if focus is None else FOCUSES[focus])(random, worker)


def _any(random: Random, worker: int) -> Action:
    chance = random.random()
    if chance < 0.30:
        return _kill(random, worker)
    if chance < 0.36:
        return Leave(worker)
    if chance < 0.52:
        return _freeze(random, worker)
    if chance < 0.66:
        return _cut(random, worker)
    if chance < 0.72:
        return Damage(worker, random.getrandbits(32))
    if chance < 0.78:
        return Wait(random.choice((1_000, 3_000)))
    return _broker(random, worker)


def _kill(random: Random, worker: int) -> Action:
    back_after_ms = random.choice((-1, 10, 10, 300, 2_000))
    if random.random() < 0.25:
        return Kill(worker, in_write=random.randrange(3), back_after_ms=back_after_ms)
    return Kill(worker, _moment(random), back_after_ms=back_after_ms)


def _freeze(random: Random, worker: int) -> Action:
    return Freeze(worker, random.choice((200, 1_200, 3_000, 5_000)), _moment(random))


def _cut(random: Random, worker: int) -> Action:
    what = random.choice((Blockade.REQUESTS, Blockade.ANSWERS))
    return Cut(worker, what, random.choice((300, 1_500, 4_000)), _moment(random))


def _damage(random: Random, worker: int) -> Action:
    if random.random() < 0.4:
        return _kill(random, worker)
    return Damage(worker, random.getrandbits(32))


def _broker(random: Random, worker: int) -> Action:
    chance = random.random()
    if chance < 0.6:
        return crash(random, flushes=False)
    return (
        Stop(random.choice((10, 300, 2_000))) if chance < 0.75 else BadDisk(random.choice((2, 5)))
    )


def _come_and_go(random: Random, worker: int) -> Action:
    chance = random.random()
    if chance < 0.4:
        return Start(worker)
    if chance < 0.7:
        return Leave(worker)
    return Kill(worker, _moment(random), back_after_ms=random.choice((10, 300)))


def _stragglers(random: Random) -> Iterator[Step[Action]]:
    """Stop one worker that is about to rejoin; let another have its tasks for a while, and go."""
    yield Step(0, Leave(1))
    for _ in range(3):
        yield Step(1_200, _feed(random))
        yield Step(0, Freeze(0, 2_500, JOINING))
        yield Step(50, Start(1))
        for _ in range(5):
            yield Step(random.choice((300, 400, 450)), _feed(random))
        yield Step(random.choice((100, 300)), Leave(1))
        yield Step(800, _feed(random))


def _killed_owners(random: Random) -> Iterator[Step[Action]]:
    """Kill a worker when it has been told what to revoke, and let it come back in its session."""
    yield Step(0, Leave(1))
    for _ in range(2):
        yield Step(1_200, _feed(random))
        yield Step(0, Kill(0, ThreadState.REBALANCING, back_after_ms=random.choice((10, 300))))
        yield Step(50, Start(1))
        for _ in range(3):
            yield Step(random.choice((300, 400)), _feed(random))
        yield Step(random.choice((100, 300)), Leave(1))
    yield Step(1_200, Kill(0, ThreadState.REBALANCING, back_after_ms=10))
    yield Step(50, Start(1))
    yield Step(2_500, _feed(random))


def stopped_beyond_sessions(random: Random) -> Iterator[Step[Action]]:
    """Stop a worker in a commit until another has its tasks, then take the coordinator away.

    It stops before it asks for its membership, and goes on when the other one has written.
    """
    for number in range(4):
        worker = number % 2
        code = random.choice(AWAY)
        for_ms = random.choice((2_500, 3_500))
        yield Step(400, _feed(random))
        yield Step(800, Freeze(worker, for_ms, CommitStep.PROCESSED))
        yield Step(0, LoseCoordinator(worker, code, for_ms + 500, CommitStep.PROCESSED))
        for _ in range(12):
            yield Step(random.choice((200, 300, 450)), _feed(random))


def silent_coordinators(random: Random) -> Iterator[Step[Action]]:
    """Silence the coordinator of one task while workers come and go, so that the task moves."""
    for _ in range(5):
        for_ms = random.choice((1_000, 3_000, 6_000))
        yield Step(300, SilenceCoordinator(random.randrange(2), for_ms))
        for _ in range(6):
            yield Step(random.choice((0, 100, 400)), _feed(random))
            yield Step(random.choice((0, 300, 900)), _come_and_go(random, random.randrange(2)))


def long_outages(random: Random) -> Iterator[Step[Action]]:
    """Stop the broker for longer than any time-out of a worker, with records in flight."""
    for _ in range(3):
        for _ in range(4):
            yield Step(random.choice((0, 30, 100, 400)), _feed(random))
        down_ms = random.choice((5_000, 12_000, 20_000))
        stops = random.random() < 0.5
        yield Step(0, Stop(down_ms) if stops else Crash(0, False, down_ms))
        for _ in range(random.choice((0, 2))):
            yield Step(random.choice((300, 900)), _come_and_go(random, random.randrange(2)))
        yield Step(down_ms, Wait(2_000))


def _feed(random: Random) -> Feed:
    return Feed(random.randint(1, 12), random.getrandbits(32))


def _lose_commits(random: Random, worker: int) -> Action:
    """Lose the responses of a worker's commits, so that their outcome is unknown."""
    what = random.choice((Blockade.REQUESTS, Blockade.ANSWERS))
    at = random.choice((CommitStep.PRODUCED, CommitStep.OFFSETS_SENT))
    return Cut(worker, what, random.choice((1_500, 3_000)), at)


def _moment(random: Random) -> Moment:
    moments: tuple[Moment, ...] = (None, *CommitStep)
    return random.choice(moments)


FOCUSES: dict[str, Callable[[Random, int], Action]] = {
    "kills": _kill,
    "zombies": _freeze,
    "network": _cut,
    "broker": _broker,
    "damage": _damage,
    "rebalances": _come_and_go,
    "lost commits": _lose_commits,
}
STORIES: dict[str, Callable[[Random], Iterator[Step[Action]]]] = {
    "stragglers": _stragglers,
    "killed owners": _killed_owners,
}
"""Fixed sequences of steps, by name."""
NAMED_STORIES: dict[str, Callable[[Random], Iterator[Step[Action]]]] = {
    "stopped beyond sessions": stopped_beyond_sessions,
    "silent coordinators": silent_coordinators,
    "long outages": long_outages,
}
"""Stories that show nothing but under one guarantee, at least once or with a producer for each
task, and run only by name."""
