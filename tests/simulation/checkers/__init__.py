"""Check invariants that must hold in every history, with one checker in each file."""

from __future__ import annotations

from tests.simulation.checkers.aborted import AbortedHidden
from tests.simulation.checkers.acknowledged import Acknowledged
from tests.simulation.checkers.checker import Checker
from tests.simulation.checkers.compacted import Compacted
from tests.simulation.checkers.completed import Completed
from tests.simulation.checkers.exactly_once import ExactlyOnce
from tests.simulation.checkers.fenced import Fenced
from tests.simulation.checkers.group_offsets import GroupOffsets
from tests.simulation.checkers.producer_ids import ProducerIds
from tests.simulation.checkers.reload import Reload
from tests.simulation.checkers.watermarks import Watermarks

CHECKERS: tuple[type[Checker], ...] = (
    Watermarks,
    Fenced,
    ProducerIds,
    Acknowledged,
    Reload,
    Completed,
    GroupOffsets,
    AbortedHidden,
    Compacted,
    ExactlyOnce,
)

__all__ = [
    "CHECKERS",
    "AbortedHidden",
    "Acknowledged",
    "Checker",
    "Compacted",
    "Completed",
    "ExactlyOnce",
    "Fenced",
    "GroupOffsets",
    "ProducerIds",
    "Reload",
    "Watermarks",
]
