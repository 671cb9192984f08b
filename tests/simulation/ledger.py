"""What the clients know: what they sent, what they were told of it, and what they have seen.

A transaction was committed for certain once its EndTxn was answered; it was not if no commit was
ever asked for, or the only one was refused. In between nobody knows, and either is right as long as
it is the whole of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

Place = tuple[str, int]  # topic and partition


class Outcome(Enum):
    ABORTED = auto()
    UNKNOWN = auto()
    COMMITTED = auto()


@dataclass(slots=True, eq=False)
class SentTransaction:
    """One transaction as its producer knows it."""

    transactional_id: str
    number: int
    values: list[tuple[Place, bytes]] = field(default_factory=list)
    outcome: Outcome = Outcome.ABORTED


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A batch that a producer was told is in the log."""

    place: Place
    base_offset: int
    values: tuple[bytes, ...]


@dataclass(slots=True, eq=False)
class Seen:
    """What one reader has seen of one partition: up to `position`."""

    place: Place
    is_committed: bool
    position: int = 0
    values: list[tuple[int, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class Ledger:
    transactions: list[SentTransaction] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    seen_compacted: list[Seen] = field(default_factory=list)  # from the beginning, at the end
    numbers: dict[str, int] = field(default_factory=dict)

    def next_number(self, name: str) -> int:
        """1, 2, 3 and so on for each name."""
        self.numbers[name] = self.numbers.get(name, 0) + 1
        return self.numbers[name]
