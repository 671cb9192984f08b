"""Test that results are as if no time had passed, or the application refuses and says why."""

from __future__ import annotations

import pytest

from tests.simulation.checkers import ExactlyOnce
from tests.simulation.history import find_failure
from tests.simulation.runtime.days.bugs import (
    DAYS_BUGS,
    PlantedDays,
    producers_forgotten_at_once,
)
from tests.simulation.runtime.days.history import DaysHistory
from tests.simulation.runtime.days.refusals import Cause
from tests.simulation.runtime.days.scenario import TABLES, days_scenario
from tests.simulation.scenario import scenario
from tests.simulation.transactions import TransactionHistory

SEEDS = 4
STORY_SEEDS = 2
BUG_SEEDS = 40
TRANSACTION_SEEDS = 8


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_results_are_as_if_no_days_had_passed(seed: int, kind: str) -> None:
    found = find_failure(DaysHistory, days_scenario(seed, kind=kind, aborts=False))
    assert not found, found


@pytest.mark.parametrize("story", ["idle for weeks", "lost unread"])
@pytest.mark.parametrize("seed", range(STORY_SEEDS))
def test_an_application_refuses_by_name_or_its_results_are_right(seed: int, story: str) -> None:
    found = find_failure(DaysHistory, days_scenario(seed, story, kind=TABLES[seed % 4]))
    assert not found, found


def test_records_that_expired_unread_are_a_refusal_with_that_cause() -> None:
    history = DaysHistory(days_scenario(1, "lost unread", kind="count"))
    assert history.run() is None
    assert history.refusal is not None
    assert history.refusal.cause is Cause.UNREAD


@pytest.mark.parametrize("seed", range(TRANSACTION_SEEDS))
def test_every_law_of_transactions_holds_while_ids_expire(seed: int) -> None:
    found = find_failure(TransactionHistory, scenario(seed, days=True))
    assert not found, found


def test_a_broker_that_forgets_producers_too_soon_is_found() -> None:
    for seed in range(BUG_SEEDS):
        chosen = scenario(seed, days=True)
        found = TransactionHistory(chosen, producers_forgotten_at_once, [ExactlyOnce]).run()
        if found is not None:
            assert found.checker == "exactly_once", found
            return
    pytest.fail(f"nothing is seen in {BUG_SEEDS} histories")


@pytest.mark.parametrize("planted", DAYS_BUGS, ids=[each.bug.__name__ for each in DAYS_BUGS])
def test_a_bug_that_days_show_is_found(planted: PlantedDays) -> None:
    for seed in range(BUG_SEEDS):
        chosen = days_scenario(seed, planted.story, aborts=False, stands=False, **planted.setting)
        violation = DaysHistory(chosen, planted.bug).run()
        if violation is not None:
            assert violation.checker in planted.laws, f"seed {seed}: {violation}"
            return
    pytest.fail(f"nothing is seen in {BUG_SEEDS} histories")
