"""Test that planted bugs are found by the checkers whose invariant they break, and reduced."""

from __future__ import annotations

import pytest

from tests.simulation.bugs import BUGS, Bug, replaced, time_out_keeps_the_epoch
from tests.simulation.checkers import Checker
from tests.simulation.clients.reader import Reader
from tests.simulation.conftest import FindBug
from tests.simulation.history import find_failure
from tests.simulation.scenario import scenario
from tests.simulation.transactions import TransactionHistory

SEEDS = 50  # those of CI

PLANTED = [(bug, checker) for bug, checkers in BUGS.items() for checker in checkers]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("bug", "checker"), PLANTED, ids=[f"{bug.__name__}-{each.name}" for bug, each in PLANTED]
)
def test_a_checker_finds_a_bug(bug: Bug, checker: type[Checker], find_bug: FindBug) -> None:
    def shows(seed: int) -> bool:
        violation = TransactionHistory(scenario(seed), bug, [checker]).run()
        return violation is not None and violation.checker == checker.name

    assert find_bug(SEEDS, shows) is not None, f"{checker.name} sees nothing in {SEEDS} histories"


def test_a_client_that_hangs_is_a_violation() -> None:
    async def hang(reader: Reader) -> None:
        await reader._session.world.loop.create_future()

    with replaced(Reader, "catch_up", lambda original: hang):
        violation = TransactionHistory(scenario(0), checkers=()).run()
    assert violation is not None
    assert violation.checker == "progress"


def test_a_failure_names_its_seed_and_a_short_history() -> None:
    found = find_failure(TransactionHistory, scenario(0), time_out_keeps_the_epoch)
    assert found.startswith("seed 0: ")
    steps = [line for line in found.splitlines() if line.startswith("  ")]
    assert 1 <= len(steps) <= 8, found  # of 60
