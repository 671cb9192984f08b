"""Draw from a seed what happens to a group's members, and in which order.

Each member that may leave and come back does so in one of the ways; what is left to chance is who,
when, and whether the next thing happens before the group has settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random


class Action(Enum):
    START = "starts"
    LEAVE = "leaves"  # SIGTERM: it closes its client
    CRASH = "is killed"  # kill -9
    PAUSE = "is stopped"  # until its session is over and the others own all; then it goes on
    RETURN = "returns"  # a static member ends, and is back before its session is over


@dataclass(frozen=True, slots=True)
class Step:
    """Represents a step of a plan.

    If it `settles`, the next step waits until the group has settled.
    """

    action: Action
    member: str
    settles: bool = True

    def __str__(self) -> str:
        return f"{self.member} {self.action.value}{'.' if self.settles else ', and at once:'}"


def restless(
    random: Random, dynamic: Sequence[str], static: Sequence[str], *, starts_settle: bool = False
) -> list[Step]:
    """Plan that all but one start, one leaves, one crashes, one is stopped, the static ones return.

    `starts_settle`: nothing else happens before a member that starts is in its place.
    """

    def start(member: str) -> Step:
        return Step(Action.START, member, starts_settle or _perhaps(random))

    late = random.choice(dynamic)
    *hasty, last = (each for each in (*dynamic, *static) if each != late)
    steps = [Step(Action.START, each, starts_settle) for each in hasty] + [Step(Action.START, last)]
    ways = [Action.LEAVE, Action.CRASH, Action.PAUSE]
    random.shuffle(ways)
    of_each = {late: [start(late)]}
    for member, way in zip(dynamic, ways, strict=True):
        then = of_each.setdefault(member, [])
        if way is Action.PAUSE:
            then.append(Step(way, member))
        else:
            then += [Step(way, member, _perhaps(random)), start(member)]
    for member in static:
        of_each[member] = [Step(Action.RETURN, member)]
    blocks = list(of_each.values())
    random.shuffle(blocks)
    return steps + [step for block in blocks for step in block]


def _perhaps(random: Random) -> bool:
    return random.random() < 0.5


def rolling(random: Random, before: Sequence[str], after: Sequence[str]) -> list[Step]:
    """Plan that members are replaced one by one by others, and these by the first again.

    One of each way is not closed but killed.
    """
    steps = [Step(Action.START, each, settles=False) for each in before[:-1]]
    steps.append(Step(Action.START, before[-1]))
    for old, new in ((before, after), (after, before)):
        killed = random.randrange(len(old))
        for number, (going, coming) in enumerate(zip(old, new, strict=True)):
            way = Action.CRASH if number == killed else Action.LEAVE
            steps += [Step(way, going, settles=False), Step(Action.START, coming)]
    return steps
