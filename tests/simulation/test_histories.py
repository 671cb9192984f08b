"""Test that every invariant holds in histories of transactions on a broker that crashes."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

from tests.sampling import draw_sample
from tests.simulation.history import find_failure
from tests.simulation.scenario import scenario
from tests.simulation.transactions import TransactionHistory
from tests.simulation.world import Violation

SEEDS = 15  # `make ci` runs 30, `make soak SEEDS=1000` as many as you like


@cache
def run_seed(seed: int) -> tuple[TransactionHistory, Violation | None]:
    """Return the history of a seed, which is run once for all tests, and what it violates."""
    history = TransactionHistory(scenario(seed))
    return history, history.run()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_law_holds_in_the_history_of_a_seed(seed: int) -> None:
    _, violation = run_seed(seed)
    assert violation is None, find_failure(TransactionHistory, scenario(seed))


def test_histories_are_about_something() -> None:
    """Check that histories have crashes, commits, aborts, unknown outcomes and retries."""
    # Enough of them for the rarest: in about one of ten an outcome stays unknown.
    histories = []
    for seed in range(20):
        history, violation = run_seed(seed)
        assert violation is None
        histories.append(history)
    transactions = [t for h in histories for t in h.world.ledger.transactions]
    assert len({t.outcome for t in transactions if t.values}) == 3
    assert sum(history.world.life for history in histories) > 10
    assert sum(len(h.world.ledger.acknowledged) for h in histories) > 300
    assert sum(len(seen.values) for h in histories for seen in h.world.ledger.seen) > 1_000


def fingerprints(hash_seed: str, package: str, history: str) -> str:
    program = (
        f"from {package}.{history} as History\n"
        f"from {package}.scenario import scenario\n"
        f"for seed in {draw_sample(history, range(3), 1)}:\n"
        "    history = History(scenario(seed))\n"
        "    history.run()\n"
        "    print(seed, len(history.world.trace), history.fingerprint)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout


def test_a_seed_is_the_same_history_in_every_process() -> None:
    package, history = "tests.simulation", "transactions import TransactionHistory"
    assert fingerprints("1", package, history) == fingerprints("2", package, history)
