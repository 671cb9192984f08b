"""Record what the clients know: what they sent, which outcomes they got, and what they read.

A transaction was committed for certain once its EndTxn was answered; it was not if no commit was
ever requested, or the only one was refused. In between the outcome is unknown, and either is right
as long as it is the whole of it.
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
    """Represents one transaction as its producer knows it."""

    transactional_id: str
    number: int
    values: list[tuple[Place, bytes]] = field(default_factory=list)
    outcome: Outcome = Outcome.ABORTED


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Represents a batch that was acknowledged to its producer."""

    place: Place
    base_offset: int
    values: tuple[bytes, ...]


@dataclass(slots=True, eq=False)
class Seen:
    """Holds what one reader has seen of one partition, up to `position`."""

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
        """Return 1, 2, 3 and so on for each name."""
        self.numbers[name] = self.numbers.get(name, 0) + 1
        return self.numbers[name]
