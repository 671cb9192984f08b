"""Check invariants of groups, one a file; `completed` and `reload` hold in every history."""

from __future__ import annotations

from tests.simulation.checkers.checker import Checker
from tests.simulation.checkers.completed import Completed
from tests.simulation.checkers.reload import Reload
from tests.simulation.groups.checkers.commits import Commits
from tests.simulation.groups.checkers.convergence import Convergence
from tests.simulation.groups.checkers.epochs import Epochs
from tests.simulation.groups.checkers.kept import Kept
from tests.simulation.groups.checkers.member_epochs import MemberEpochs
from tests.simulation.groups.checkers.ownership import Ownership
from tests.simulation.groups.checkers.patience import Patience
from tests.simulation.groups.checkers.recorded import Recorded
from tests.simulation.groups.checkers.revocation import Revocation
from tests.simulation.groups.checkers.stale import Stale
from tests.simulation.groups.checkers.zombies import Zombies

CHECKERS: tuple[type[Checker], ...] = (
    Ownership,
    Revocation,
    Epochs,
    MemberEpochs,
    Zombies,
    Stale,
    Patience,
    Commits,
    Kept,
    Recorded,
    Reload,
    Completed,
    Convergence,
)

__all__ = [
    "CHECKERS",
    "Commits",
    "Completed",
    "Convergence",
    "Epochs",
    "Kept",
    "MemberEpochs",
    "Ownership",
    "Patience",
    "Recorded",
    "Reload",
    "Revocation",
    "Stale",
    "Zombies",
]
