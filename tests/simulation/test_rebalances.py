"""Test that groups of up to 30 members rebalance as they should, whatever fails meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.conftest import FindBug
from tests.simulation.history import find_failure
from tests.simulation.rebalances.bugs import BUGS, DAYS_BUGS, Planted
from tests.simulation.rebalances.history import RebalanceHistory
from tests.simulation.rebalances.scenario import scenario
from tests.simulation.test_histories import fingerprints

DAYS_SEEDS = 2
SEEDS = 6  # `make soak SEEDS=1000` runs as many as you like
BUG_SEEDS = 30
BUG_MEMBERS = 4


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_law_of_rebalances_holds_in_the_history_of_a_seed(seed: int) -> None:
    found = find_failure(RebalanceHistory, scenario(seed))
    assert not found, found


@pytest.mark.parametrize("seed", range(DAYS_SEEDS))
def test_every_law_of_rebalances_holds_while_days_pass(seed: int) -> None:
    found = find_failure(RebalanceHistory, scenario(seed, days=True))
    assert not found, found


def is_seen(planted: Planted, seed: int, **chosen: Any) -> bool:
    """Tell whether the checker of a bug sees it in the history of a seed."""
    history = RebalanceHistory(scenario(seed, **chosen, **planted.setting), planted.bug)
    violation = history.run()
    return violation is not None and violation.checker == planted.checker


@pytest.mark.parametrize("planted", BUGS, ids=[planted.bug.__name__ for planted in BUGS])
def test_a_checker_finds_a_bug_of_rebalances(planted: Planted, find_bug: FindBug) -> None:
    found = find_bug(BUG_SEEDS, lambda seed: is_seen(planted, seed, members=BUG_MEMBERS))
    assert found is not None, f"{planted.checker} sees nothing in {BUG_SEEDS} histories"


@pytest.mark.parametrize("planted", DAYS_BUGS, ids=[each.bug.__name__ for each in DAYS_BUGS])
def test_a_bug_of_rebalances_that_days_show_is_found(planted: Planted, find_bug: FindBug) -> None:
    found = find_bug(
        BUG_SEEDS, lambda seed: is_seen(planted, seed, faults=2, days=True, members=BUG_MEMBERS)
    )
    assert found is not None, f"{planted.checker} sees nothing in {BUG_SEEDS} histories"


def test_a_seed_is_the_same_history_of_rebalances_in_every_process() -> None:
    module, history = "tests.simulation.rebalances", "history import RebalanceHistory"
    assert fingerprints("1", module, history) == fingerprints("2", module, history)
