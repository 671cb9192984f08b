"""Check invariants of the runtime, with one checker in each file."""

from __future__ import annotations

from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.checkers.closed import Closed
from tests.simulation.runtime.checkers.exactly_once import ExactlyOnce
from tests.simulation.runtime.checkers.fenced import Fenced
from tests.simulation.runtime.checkers.globals import Globals
from tests.simulation.runtime.checkers.grown import Grown
from tests.simulation.runtime.checkers.ledger import Ledger
from tests.simulation.runtime.checkers.offsets import Offsets
from tests.simulation.runtime.checkers.owners import Owners
from tests.simulation.runtime.checkers.results import Results
from tests.simulation.runtime.checkers.stores import Stores

CHECKERS: tuple[type[RuntimeChecker], ...] = (
    Closed,
    ExactlyOnce,
    Fenced,
    Globals,
    Grown,
    Ledger,
    Offsets,
    Owners,
    Results,
    Stores,
)

__all__ = [
    "CHECKERS",
    "Closed",
    "ExactlyOnce",
    "Fenced",
    "Globals",
    "Grown",
    "Ledger",
    "Offsets",
    "Owners",
    "Results",
    "RuntimeChecker",
    "Stores",
]
