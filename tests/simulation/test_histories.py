"""Test that every invariant holds in histories of transactions on a broker that crashes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.history import find_failure
from tests.simulation.scenario import scenario
from tests.simulation.transactions import TransactionHistory

SEEDS = 15  # `make ci` runs 50, `make soak SEEDS=1000` as many as you like


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_law_holds_in_the_history_of_a_seed(seed: int) -> None:
    found = find_failure(TransactionHistory, scenario(seed))
    assert not found, found


def test_histories_are_about_something() -> None:
    """Check that histories have crashes, commits, aborts, unknown outcomes and retries."""
    # Enough of them for the rarest: in about one of ten an outcome stays unknown.
    histories = [TransactionHistory(scenario(seed)) for seed in range(20)]
    for history in histories:
        assert history.run() is None
    transactions = [t for h in histories for t in h.world.ledger.transactions]
    assert len({t.outcome for t in transactions if t.values}) == 3
    assert sum(history.world.life for history in histories) > 10
    assert sum(len(h.world.ledger.acknowledged) for h in histories) > 300
    assert sum(len(seen.values) for h in histories for seen in h.world.ledger.seen) > 1_000


def fingerprints(hash_seed: str, package: str, history: str) -> str:
    program = (
        f"from {package}.{history} as History\n"
        f"from {package}.scenario import scenario\n"
        "for seed in range(3):\n"
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
