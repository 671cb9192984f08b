"""Test that bugs planted in the runtime are found by the checkers whose invariant they break."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.conftest import FindBug
from tests.simulation.history import find_failure
from tests.simulation.runtime.application_bugs import APPLICATION_BUGS
from tests.simulation.runtime.bugs import (
    BUGS,
    ROUND_BUGS,
    STRAGGLERS,
    VERSION_BUGS,
    Bug,
    Planted,
    outages_counted_as_failures,
    stores_emptied_at_each_start,
)
from tests.simulation.runtime.checkers import RuntimeChecker
from tests.simulation.runtime.history import RuntimeHistory
from tests.simulation.runtime.refusal_bugs import REFUSAL_BUGS
from tests.simulation.runtime.scenario import scenario
from tests.simulation.runtime.standby_bugs import STANDBY_BUGS

SEEDS = 60
UNSEEN = f"nothing is seen in {SEEDS} histories"
REFUSAL = "millrace group restore-offsets"
"""What an application says whose offsets don't account for its stores."""

PLANTED = [
    (planted, checker)
    for planted in (*BUGS, *APPLICATION_BUGS, *STANDBY_BUGS, *REFUSAL_BUGS)
    for checker in planted.checkers
]


@pytest.mark.sampled(24)
@pytest.mark.parametrize(
    ("planted", "checker"),
    PLANTED,
    ids=[f"{planted.bug.__name__}-{each.name}" for planted, each in PLANTED],
)
def test_a_checker_finds_a_bug_of_the_runtime(
    planted: Planted, checker: type[RuntimeChecker], find_bug: FindBug
) -> None:
    def shows(seed: int) -> bool:
        chosen = scenario(seed, focus=planted.focus, **planted.setting)
        violation = RuntimeHistory(chosen, planted.bug, [checker]).run()
        # The runtime may refuse to go on before the checker sees what it prevents.
        return violation is not None and (
            violation.checker == checker.name or REFUSAL in str(violation)
        )

    assert find_bug(SEEDS, shows) is not None, f"{checker.name} sees nothing in {SEEDS} histories"


def is_stuck(bug: Bug, seed: int, **chosen: Any) -> bool:
    """Tell whether the history of a seed makes no progress with that bug."""
    violation = RuntimeHistory(scenario(seed, **chosen), bug, []).run()
    return violation is not None and violation.checker == "progress"


@pytest.mark.parametrize("bug", VERSION_BUGS, ids=[bug.__name__ for bug in VERSION_BUGS])
def test_an_input_that_nobody_has_while_versions_run_side_by_side_is_found(
    bug: Bug, find_bug: FindBug
) -> None:
    chosen = {"focus": "rebalances", "kind": "lines", "together": True, "workers": 2}
    assert find_bug(SEEDS, lambda seed: is_stuck(bug, seed, **chosen)) is not None, UNSEEN


@pytest.mark.parametrize(("bug", "focus"), ROUND_BUGS, ids=[bug.__name__ for bug, _ in ROUND_BUGS])
def test_a_task_that_nobody_has_after_a_round_is_found(
    bug: Bug, focus: str, find_bug: FindBug
) -> None:
    found = find_bug(SEEDS, lambda seed: is_stuck(bug, seed, focus=focus, **STRAGGLERS))
    assert found is not None, UNSEEN


@pytest.mark.sampled(1)
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
def test_an_outage_that_ends_a_thread_is_found(guarantee: str, find_bug: FindBug) -> None:
    outages: dict[str, Any] = {
        "focus": "long outages",
        "guarantee": guarantee,
        "workers": 2,
        "kind": "collect",
        "task_timeout_ms": 8_000,
        "switches": False,
    }
    bug = outages_counted_as_failures
    assert find_bug(SEEDS, lambda seed: is_stuck(bug, seed, **outages)) is not None, UNSEEN


def test_a_failure_of_the_runtime_is_shown_by_a_short_history() -> None:
    found = find_failure(
        RuntimeHistory, scenario(2, kind="collect", persistent=True), stores_emptied_at_each_start
    )
    assert found.startswith("seed 2: stores: "), found
    steps = [line for line in found.splitlines() if line.startswith("  ")]
    assert len(steps) <= 5, found  # of 40
