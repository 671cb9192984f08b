"""Define what happens to an application while days pass, beside records, starts and kills."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from tests.simulation.runtime.scenario import Feed, Kill, Start


@dataclass(frozen=True, slots=True)
class Pass:
    """Represents days that pass; `stands`: event time does not go on meanwhile."""

    days: float
    stands: bool = False


@dataclass(frozen=True, slots=True)
class Rest:
    """Represents a step that waits until all input is processed, as far as that comes."""


@dataclass(frozen=True, slots=True)
class StopAll:
    """Represents the end of all workers: by SIGTERM, or by kill -9."""

    killed: bool = False


@dataclass(frozen=True, slots=True)
class Replace:
    """Represents a machine whose disk is gone: what starts there next is on a new one."""

    machine: int


@dataclass(frozen=True, slots=True)
class Abort:
    """Represents a transaction of another producer on each input partition that is aborted."""

    number: int


@dataclass(frozen=True, slots=True)
class Recreate:
    """Represents the input topic being deleted and made again under the same name."""


@dataclass(frozen=True, slots=True)
class DeleteChangelog:
    """Represents a reset of the application that is interrupted after its first step."""


@dataclass(frozen=True, slots=True)
class FillChangelog:
    """Represents a changelog that is deleted and made again, with aborted records in it."""


@dataclass(frozen=True, slots=True)
class AddPartition:
    """Represents another partition of the input, to which the records of some keys go."""


@dataclass(frozen=True, slots=True)
class SetTopic:
    """Represents a setting of a topic that somebody changes by hand."""

    topic: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class SetOffsets:
    """Represents a tool that sets an empty group's offsets back, or deletes those of one input."""

    back: int
    deletes: bool = False


@dataclass(frozen=True, slots=True)
class CutChangelog:
    """Represents the first records of a changelog being deleted, as by DeleteRecords.

    `part` is how many of them, of all; one at least is deleted.
    """

    part: float


@dataclass(frozen=True, slots=True)
class TryVersion:
    """Represents a version that keeps windows for another time: it is started, and is refused.

    What starts afterwards is the former version again.
    """

    kept_ms: int


DaysAction: TypeAlias = (
    Feed
    | Start
    | Kill
    | Pass
    | Rest
    | StopAll
    | Replace
    | Abort
    | Recreate
    | DeleteChangelog
    | FillChangelog
    | AddPartition
    | SetTopic
    | SetOffsets
    | CutChangelog
    | TryVersion
)


def feed_some(random: Random) -> Feed:
    """Return a step that writes a few records to the input."""
    return Feed(random.randint(2, 10), random.getrandbits(32))
