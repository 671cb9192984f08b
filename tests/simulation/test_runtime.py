"""Test that every invariant holds in histories of the runtime on a broker that crashes."""

from __future__ import annotations

import _thread
from functools import cache
from typing import Any

import pytest

from tests.simulation.history import find_failure
from tests.simulation.runtime.application_bugs import STOPPED
from tests.simulation.runtime.applications import APPLICATIONS
from tests.simulation.runtime.history import RuntimeHistory
from tests.simulation.runtime.refusal_bugs import REFUSED
from tests.simulation.runtime.scenario import scenario
from tests.simulation.runtime.topologies import TIMED
from tests.simulation.test_histories import fingerprints
from tests.simulation.world import Violation

TIMED_SEEDS = 2
APPLICATION_SEEDS = 2
LEDGER_SEEDS = 5
LINES_SEEDS = 4
STANDBY_SEEDS = 6
STOPPED_SEEDS = 3
SILENT_SEEDS = 4
SILENT: dict[str, Any] = {
    "guarantee": "exactly_once",
    "switches": False,
    "workers": 2,
    "kind": "collect",
}
OUTAGE_SEEDS = 2
OUTAGES: dict[str, Any] = {"workers": 2, "kind": "collect", "task_timeout_ms": 8_000}
"""With time-outs of a session, a transaction and a task that are shorter than the outages."""
SEEDS = 10  # `make ci` runs 30, `make soak SEEDS=1000` as many as you like


@cache
def run_seed(seed: int) -> tuple[RuntimeHistory, Violation | None]:
    """Return the history of a seed, which is run once for all tests, and what it violates."""
    history = RuntimeHistory(scenario(seed))
    return history, history.run()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_law_of_the_runtime_holds_in_the_history_of_a_seed(seed: int) -> None:
    threads = _thread._count()
    _, violation = run_seed(seed)
    assert violation is None, find_failure(RuntimeHistory, scenario(seed))
    assert _thread._count() == threads


@pytest.mark.sampled(1, by="seed")
@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("seed", range(TIMED_SEEDS))
def test_every_law_holds_where_time_decides_what_comes_out(kind: str, seed: int) -> None:
    found = find_failure(RuntimeHistory, scenario(seed, kind=kind))
    assert not found, found


@pytest.mark.sampled(1, by="seed")
@pytest.mark.parametrize("kind", APPLICATIONS)
@pytest.mark.parametrize("seed", range(APPLICATION_SEEDS))
def test_every_law_holds_for_an_application_with_a_model_of_its_own(kind: str, seed: int) -> None:
    found = find_failure(RuntimeHistory, scenario(seed, kind=kind))
    assert not found, found


def test_histories_with_refused_records_are_about_refusals_by_brokers_and_by_settings() -> None:
    """Check that records of both kinds are refused, and not so few."""
    history = RuntimeHistory(scenario(0, focus="kills", **REFUSED))
    assert history.run() is None
    letters = history.world.committed("dead")[0]
    kinds = {value.split()[0] for _, _, value in letters}
    assert kinds == {b"late", b"later"}
    counters = [loop.counters for worker in history.world.workers for loop in worker.loops]
    assert sum(each.dropped for each in counters) >= len(letters) > 5


@pytest.mark.parametrize("seed", range(LEDGER_SEEDS))
def test_every_law_holds_with_a_ledger(seed: int) -> None:
    found = find_failure(RuntimeHistory, scenario(seed, ledger=True))
    assert not found, found


@pytest.mark.sampled(3, by="seed")
@pytest.mark.parametrize("seed", range(STANDBY_SEEDS))
def test_every_law_holds_while_standbys_follow_and_are_promoted(seed: int) -> None:
    """Check that a standby's store is what its changelog says, at every write, in every history."""
    found = find_failure(RuntimeHistory, scenario(seed, standbys=0.7, kind="count", unsteady=0.5))
    assert not found, found


@pytest.mark.sampled(2, by="seed")
@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("seed", range(LINES_SEEDS))
def test_every_law_holds_while_versions_that_number_their_lines_otherwise_run_side_by_side(
    seed: int, together: bool
) -> None:
    """Check workers that swap two lines of the topology in every second life."""
    found = find_failure(RuntimeHistory, scenario(seed, kind="lines", together=together))
    assert not found, found


@pytest.mark.parametrize("seed", range(STOPPED_SEEDS))
def test_at_least_once_nobody_writes_to_a_changelog_after_its_successor(seed: int) -> None:
    found = find_failure(RuntimeHistory, scenario(seed, focus="stopped beyond sessions", **STOPPED))
    assert not found, found


@pytest.mark.parametrize("seed", range(SILENT_SEEDS))
def test_every_law_holds_while_coordinators_of_single_tasks_are_silent_and_tasks_move(
    seed: int,
) -> None:
    found = find_failure(RuntimeHistory, scenario(seed, focus="silent coordinators", **SILENT))
    assert not found, found


def test_histories_with_silent_coordinators_are_about_tasks_that_wait_while_others_commit() -> None:
    histories = [
        RuntimeHistory(scenario(seed, focus="silent coordinators", **SILENT)) for seed in range(3)
    ]
    for history in histories:
        assert history.run() is None
    counters = [
        loop.counters
        for history in histories
        for worker in history.world.workers
        for loop in worker.loops
    ]
    assert sum(history.world.silent_answers for history in histories) > 100
    assert sum(each.commits for each in counters) > 30
    assert sum(each.rebalances for each in counters) > 20


def test_histories_of_the_runtime_are_about_something() -> None:
    """Check that histories have ends, rebalances, recoveries and restores."""
    histories = []
    for seed in range(16):
        history, violation = run_seed(seed)
        assert violation is None
        histories.append(history)
    workers = [worker for history in histories for worker in history.world.workers]
    counters = [loop.counters for worker in workers for loop in worker.loops]
    assert sum(worker.lives for worker in workers) > 33
    assert sum(history.world.life for history in histories) > 13
    assert sum(len(given) for h in histories for given in h.world.given.values()) > 930
    assert sum(each.rebalances for each in counters) > 53
    assert sum(each.commits for each in counters) > 160
    assert sum(each.restored_records for each in counters) > 66
    assert sum(each.outcomes_unknown for each in counters) > 4
    assert sum(each.tasks_migrated for each in counters) > 4


def test_a_seed_is_the_same_history_of_the_runtime_in_every_process() -> None:
    module, history = "tests.simulation.runtime", "history import RuntimeHistory"
    assert fingerprints("1", module, history) == fingerprints("2", module, history)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
@pytest.mark.parametrize("seed", range(OUTAGE_SEEDS))
def test_every_law_holds_through_outages_longer_than_any_time_out(
    guarantee: str, seed: int
) -> None:
    chosen = scenario(seed, focus="long outages", guarantee=guarantee, switches=False, **OUTAGES)
    found = find_failure(RuntimeHistory, chosen)
    assert not found, found
