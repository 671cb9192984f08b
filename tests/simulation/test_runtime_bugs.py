"""Test that bugs planted in the runtime are found by the checkers whose invariant they break."""

from __future__ import annotations

from typing import Any

import pytest

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
    planted: Planted, checker: type[RuntimeChecker]
) -> None:
    for seed in range(SEEDS):
        chosen = scenario(seed, focus=planted.focus, **planted.setting)
        violation = RuntimeHistory(chosen, planted.bug, [checker]).run()
        if violation is None:
            continue
        # The runtime may refuse to go on before the checker sees what it prevents.
        if violation.checker == checker.name or REFUSAL in str(violation):
            return
    pytest.fail(f"{checker.name} sees nothing in {SEEDS} histories")


@pytest.mark.parametrize("bug", VERSION_BUGS, ids=[bug.__name__ for bug in VERSION_BUGS])
def test_an_input_that_nobody_has_while_versions_run_side_by_side_is_found(bug: Bug) -> None:
    for seed in range(SEEDS):
        chosen = scenario(seed, focus="rebalances", kind="lines", together=True, workers=2)
        violation = RuntimeHistory(chosen, bug, []).run()
        if violation is not None and violation.checker == "progress":
            return
    pytest.fail(f"nothing is seen in {SEEDS} histories")


@pytest.mark.parametrize(("bug", "focus"), ROUND_BUGS, ids=[bug.__name__ for bug, _ in ROUND_BUGS])
def test_a_task_that_nobody_has_after_a_round_is_found(bug: Bug, focus: str) -> None:
    for seed in range(SEEDS):
        chosen = scenario(seed, focus=focus, **STRAGGLERS)
        violation = RuntimeHistory(chosen, bug, []).run()
        if violation is not None and violation.checker == "progress":
            return
    pytest.fail(f"nothing is seen in {SEEDS} histories")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
def test_an_outage_that_ends_a_thread_is_found(guarantee: str) -> None:
    outages: dict[str, Any] = {
        "workers": 2,
        "kind": "collect",
        "task_timeout_ms": 8_000,
        "switches": False,
    }
    for seed in range(SEEDS):
        chosen = scenario(seed, focus="long outages", guarantee=guarantee, **outages)
        violation = RuntimeHistory(chosen, outages_counted_as_failures, []).run()
        if violation is not None and violation.checker == "progress":
            return
    pytest.fail(f"nothing is seen in {SEEDS} histories")


def test_a_failure_of_the_runtime_is_shown_by_a_short_history() -> None:
    found = find_failure(
        RuntimeHistory, scenario(2, kind="collect", persistent=True), stores_emptied_at_each_start
    )
    assert found.startswith("seed 2: stores: "), found
    steps = [line for line in found.splitlines() if line.startswith("  ")]
    assert len(steps) <= 5, found  # of 40
