"""Read what a member's process says, a line an event: `<when> <what> <numbers>`.

    assigned, revoked, lost   partitions
    consumed                  partition, offset, the record's number
    committed                 partition, offset, when the commit was asked for
    closed

`when` is in nanoseconds of the machine's monotonic clock, which all processes share, whatever their
language. It is taken where it makes an ownership no shorter than it was: at the start of what is
called for an assignment, at the end of what is called for a revocation, before the member tells the
broker. A commit counts from when it was asked for to when it was answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.clients.groups.delays import Delay

WHAT = frozenset({"assigned", "revoked", "lost", "consumed", "committed", "closed"})


@dataclass(frozen=True, slots=True)
class Event:
    at_ns: int
    what: str
    numbers: tuple[int, ...] = ()


@dataclass(slots=True)
class Life:
    """Holds the events of one process of a member from its start to its end.

    `owned` are the partitions that it takes for its own, by its last event. `paused` are the times
    at which it was stopped in its tracks for longer than its session, `asked_to_end_ns` is when it
    was sent a signal, and `ended_ns` when it was gone. `delays`: how long it had to wait for a
    processor.
    """

    name: str
    events: list[Event] = field(default_factory=list)
    owned: set[int] = field(default_factory=set)
    paused: list[int] = field(default_factory=list)
    asked_to_end_ns: int | None = None
    ended_ns: int | None = None
    delays: list[Delay] = field(default_factory=list)

    def hear(self, events: Iterable[Event]) -> None:
        """Take in what the process has said since the last call."""
        for event in events:
            self.events.append(event)
            if event.what == "assigned":
                self.owned.update(event.numbers)
            elif event.what in ("revoked", "lost"):
                self.owned.difference_update(event.numbers)


class Said:
    """Reads the complete lines of a growing file.

    A line that is not complete yet, or never will be, is none.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""

    def read(self) -> Iterator[Event]:
        """Yield the events since the last call."""
        complete, _, self._rest = (self._rest + self._file.read()).rpartition(b"\n")
        return map(parse, complete.decode().splitlines())

    def close(self) -> None:
        self._file.close()


def parse(line: str) -> Event:
    at, what, *numbers = line.split()
    if what not in WHAT:
        raise ValueError(f"no event: {line!r}")
    return Event(int(at), what, tuple(map(int, numbers)))
