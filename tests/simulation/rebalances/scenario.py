"""Make a scenario of members that come, go, sleep and change their version, from a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

from tests.simulation.rebalances.world import STREAMS, RebalanceSetting
from tests.simulation.runtime.process import Blockade
from tests.simulation.steps import Fault, PassDays, Scenario, Step, Stop, crash
from tests.simulation.world import Setting


@dataclass(frozen=True, slots=True)
class Come:
    """Represents the start of a member that is down, of a version."""

    member: int
    version: int


@dataclass(frozen=True, slots=True)
class Go:
    """Represents the stop of a member, as SIGTERM does."""

    member: int


@dataclass(frozen=True, slots=True)
class Kill:
    """Represents a kill -9 of a member, which comes back after a time, or not: -1."""

    member: int
    back_after_ms: int
    version: int


@dataclass(frozen=True, slots=True)
class Sleep:
    """Represents SIGSTOP of a member, now or when it joins next, and SIGCONT after a time."""

    member: int
    for_ms: int
    at_join: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """Represents a step that loses a member's requests, or the answers, for a time."""

    member: int
    what: Blockade
    for_ms: int


@dataclass(frozen=True, slots=True)
class Change:
    """Represents a single change of a group at rest, after which it comes to rest again.

    `kind` is join, leave, restart (in place, within the session), silence (a member leaves while
    the others get no answers), or days, which pass. The seed says of whom.
    """

    kind: str
    seed: int


Action: TypeAlias = Come | Go | Kill | Sleep | Cut | Change | PassDays | Fault
RebalanceScenario: TypeAlias = Scenario[RebalanceSetting, Action]
CHANGES = ("join", "leave", "restart")
STREAMS_CHANGES = (*CHANGES, "silence")


def scenario(
    seed: int, faults: int = 14, rounds: int = 2, *, days: bool = False, **given: Any
) -> RebalanceScenario:
    """Return the scenario of a seed: rounds of faults, then one change of each kind at rest.

    With `days`, some pass in the middle of the faults and at rest. `given` are fields of the
    setting.
    """
    random = Random(f"{seed} rebalances")
    members = random.choice((3, 6, 10, 18, 30))
    setting = replace(
        RebalanceSetting(
            world=Setting(trouble=random.choice((0.0, 0.0, 0.01, 0.03)), days=days),
            members=members,
            members_a_directory=random.choice((1, 1, 2, 3)),
            standbys=random.choice((0, 1, 1, 2)),
            warmups=random.choice((2, 2, 6)),
            is_transactional=random.random() < 0.75,
            records_max=random.choice((200, 2_000, 8_000)),
            records_a_commit=random.choice((0, 5, 40)),
            session_timeout_ms=random.choice((2_000, 4_000)),
            preemption=random.choice((0.0, 0.02)),
        ),
        **given,
    )
    if setting.protocol == STREAMS:
        delays = Random(f"{seed} delays")
        waits = {
            "initial_delay_ms": delays.choice((0, 300, 3_000)),
            "assignment_interval_ms": delays.choice((0, 300, 1_000)),
        }
        setting = replace(setting, **{**waits, **given})
    # A streams group has one topology.
    changes = STREAMS_CHANGES if setting.protocol == STREAMS else CHANGES
    is_upgraded = random.random() < 0.6 and setting.protocol != STREAMS
    passing = Random(f"{seed} days")
    steps: list[Step[Action]] = []
    for number in range(rounds):
        share = (number + random.random()) / rounds if is_upgraded else 0.0
        for _ in range(faults):
            gap_ms = random.choice((0, 20, 200, 700, 2_000))
            steps.append(Step(gap_ms, _fault(random, setting.members, share)))
            if days and passing.random() < 0.1:
                steps.append(Step(0, PassDays(passing.choice((2, 8)))))
        steps += [Step(0, Change(kind, random.getrandbits(32))) for kind in changes]
        if days:
            steps.append(Step(0, Change("days", 0)))
    return Scenario(seed, setting, tuple(steps))


def _fault(random: Random, members: int, share: float) -> Action:
    """Return a fault; `share` of the members that start are of the larger version."""
    member, chance = random.randrange(members), random.random()
    version = int(random.random() < share)
    if chance < 0.25:
        return Come(member, version)
    if chance < 0.37:
        return Go(member)
    if chance < 0.65:
        return Kill(member, random.choice((-1, 20, 300, 300, 2_500)), version)
    if chance < 0.82:
        return Sleep(member, random.choice((500, 3_000, 6_000)), random.random() < 0.5)
    if chance < 0.92:
        what = random.choice((Blockade.REQUESTS, Blockade.ANSWERS))
        return Cut(member, what, random.choice((500, 3_000)))
    if chance < 0.96:
        return Stop(random.choice((10, 300, 2_000)))
    return crash(random, flushes=False)
