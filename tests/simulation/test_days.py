"""Test that results are as if no time had passed, or the application refuses and says why."""

from __future__ import annotations

import pytest

from tests.sampling import draw_sample
from tests.simulation.checkers import ExactlyOnce
from tests.simulation.conftest import FindBug
from tests.simulation.history import find_failure
from tests.simulation.runtime.days.bugs import (
    DAYS_BUGS,
    PlantedDays,
    producers_forgotten_at_once,
)
from tests.simulation.runtime.days.history import DaysHistory
from tests.simulation.runtime.days.refusals import Cause
from tests.simulation.runtime.days.scenario import (
    BEGUN_AT_THE_END,
    KINDS,
    TABLES,
    days_scenario,
)
from tests.simulation.scenario import scenario
from tests.simulation.transactions import TransactionHistory

SEEDS = 3
STORY_SEEDS = 2
BUG_SEEDS = 40
TRANSACTION_SEEDS = 8
TOLD = (
    *(("idle for weeks", kind) for kind in TABLES),
    *(("lost unread", kind) for kind in ("copy", "count", "collect", "regroup")),
    *(("topic made again", kind) for kind in ("copy", "count", "collect", "regroup")),
    *(("idle after aborted", kind) for kind in ("copy", "collect", "closing")),
    *(("killed behind aborted", kind) for kind in ("copy", "count")),
    *(("windows that stand", kind) for kind in ("closing", "suppress", "versioned")),
    *(("partition added", kind) for kind in ("copy", "collect", "regroup")),
    *(("partition added at latest", kind) for kind in ("copy", "regroup")),
    *(("changelog that deletes", kind) for kind in ("count", "regroup", "closing")),
    *(("reset interrupted", kind) for kind in ("count", "regroup", "suppress")),
    *(("changelog filled again", kind) for kind in ("count", "collect", "closing")),
    ("layout changed", "suppress"),
    *((BEGUN_AT_THE_END, kind) for kind in ("copy", "count", "closing")),
    # What has no state can't know what it had read.
    *(("stopped beyond offsets", kind) for kind in ("collect", "regroup", "closing")),
    *(("offsets set back", kind) for kind in (*TABLES[1:], "closing", "suppress")),
)


@pytest.mark.parametrize(
    ("seed", "kind"),
    # A join waits for both of its inputs, which takes long.
    [
        *((seed, kind) for seed in draw_sample("days", range(SEEDS), 1) for kind in KINDS),
        (0, "versioned"),
    ],
)
def test_results_are_as_if_no_days_had_passed(seed: int, kind: str) -> None:
    found = find_failure(DaysHistory, days_scenario(seed, kind=kind))
    assert not found, found


@pytest.mark.sampled(1, by="seed")
@pytest.mark.parametrize(("story", "kind"), TOLD)
@pytest.mark.parametrize("seed", range(STORY_SEEDS))
def test_an_application_refuses_by_name_or_its_results_are_right(
    seed: int, story: str, kind: str
) -> None:
    found = find_failure(DaysHistory, days_scenario(seed, story, kind=kind))
    assert not found, found


@pytest.mark.parametrize(
    ("story", "cause"),
    [
        ("lost unread", Cause.UNREAD),
        ("stopped beyond offsets", Cause.OFFSETS),
        ("partition added", Cause.PARTITIONS),
        ("reset interrupted", Cause.RESET),
        ("changelog filled again", Cause.TOPIC),
        ("killed behind aborted", Cause.UNMOVED),
    ],
)
def test_what_can_not_be_kept_is_refused_with_its_cause(story: str, cause: Cause) -> None:
    history = DaysHistory(days_scenario(1, story, kind="count"))
    assert history.run() is None
    assert history.refusal is not None
    assert history.refusal.cause is cause


@pytest.mark.parametrize("seed", range(TRANSACTION_SEEDS))
def test_every_law_of_transactions_holds_while_ids_expire(seed: int) -> None:
    found = find_failure(TransactionHistory, scenario(seed, days=True))
    assert not found, found


def test_a_broker_that_forgets_producers_too_soon_is_found(find_bug: FindBug) -> None:
    def shows(seed: int) -> bool:
        chosen = scenario(seed, days=True)
        found = TransactionHistory(chosen, producers_forgotten_at_once, [ExactlyOnce]).run()
        assert found is None or found.checker == "exactly_once", found
        return found is not None

    assert find_bug(BUG_SEEDS, shows) is not None, f"nothing is seen in {BUG_SEEDS} histories"


@pytest.mark.parametrize("planted", DAYS_BUGS, ids=[each.name for each in DAYS_BUGS])
def test_a_bug_that_days_show_is_found(planted: PlantedDays, find_bug: FindBug) -> None:
    def shows(seed: int) -> bool:
        chosen = days_scenario(seed, planted.story, aborts=False, stands=False, **planted.setting)
        violation = DaysHistory(chosen, planted.bug).run()
        assert violation is None or violation.checker in planted.laws, f"seed {seed}: {violation}"
        return violation is not None

    assert find_bug(BUG_SEEDS, shows) is not None, f"nothing is seen in {BUG_SEEDS} histories"
