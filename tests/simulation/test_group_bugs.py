"""Bugs that are planted in the group coordinator are found, each by the checkers of its law."""

from __future__ import annotations

import pytest

from tests.simulation.checkers import Checker
from tests.simulation.groups.bugs import BUGS
from tests.simulation.groups.history import GroupHistory
from tests.simulation.groups.scenario import scenario
from tests.simulation.history import Bug

SEEDS = 50  # those of CI

PLANTED = [(bug, checker) for bug, checkers in BUGS.items() for checker in checkers]


@pytest.mark.parametrize(
    ("bug", "checker"), PLANTED, ids=[f"{bug.__name__}-{each.name}" for bug, each in PLANTED]
)
def test_a_checker_of_groups_finds_a_bug(bug: Bug, checker: type[Checker]) -> None:
    for seed in range(SEEDS):
        violation = GroupHistory(scenario(seed), bug, [checker]).run()
        if violation is not None and violation.checker == checker.name:
            return
    pytest.fail(f"{checker.name} sees nothing in {SEEDS} histories")
