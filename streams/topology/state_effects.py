"""Name the fate of a store's or a topic's content in a new version."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class StateOutcome(StrEnum):
    """Names the fates of a store's or a topic's content at a start, from best to worst."""

    NEW = "new"
    KEPT = "kept"
    RESTORED = "restored"
    REDUCED = "reduced"
    LOST = "lost"


class StateEffect(NamedTuple):
    """Represents one difference, what becomes of the state by it, why, and what to do about it."""

    difference: str
    outcome: StateOutcome
    reason: str = ""
    remedy: str = ""
