"""Test that a worker cut off in one direction for longer than its session works on afterwards.

Requests that take effect while no answer arrives: what it wrote may or may not be committed, and it
must not guess. Answers that would arrive to requests that do not: it is thought dead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.crashes.checks import check_changelogs, check_output
from tests.crashes.one_way import Network, Proxied, Rules
from tests.crashes.trial import CrashWorker, Trial
from tests.crashes.words import RUNS, wait_for

pytestmark = pytest.mark.sampled(1, by="broker")

SESSION_MS = 4_000
TRANSACTION_MS = 5_000
CUT_OFF_S = 8.0


@pytest.fixture
def network(broker: Broker, tmp_path: Path) -> Iterator[Network]:
    """Provide a network with a broker of its own, of the kind that is tested."""
    if broker.kind == "address":
        pytest.skip("a broker at an address can't be put behind a proxy")
    made: Network = Rules(tmp_path) if broker.kind == "embedded" else Proxied()
    yield made
    made.close()


def test_a_worker_cut_off_in_one_direction_for_longer_than_its_session_works_on(
    network: Network,
    new_worker: Callable[..., CrashWorker],
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    trial = Trial(network.servers, unique("one-way"), tmp_path / "state")
    settings = {"session": SESSION_MS, "transaction": TRANSACTION_MS}
    worker = new_worker(trial, servers=network.through, **settings)
    worker.start()
    heir = new_worker(trial, state=tmp_path / "heir", **settings)
    trial.load()
    trial.wait_for_output()
    for direction in ("answers", "requests"):
        trial.load()
        network.hold(direction, trial.application)
        cut_off_until_s = time.monotonic() + CUT_OFF_S
        if network.through != network.servers:  # whom the network does not cut off
            heir.start()
            trial.load()
            trial.wait_for_output()
        time.sleep(max(0.0, cut_off_until_s - time.monotonic()))
        at = worker.log_path.stat().st_size
        network.heal()
        trial.load()
        trial.wait_for_output()
        wait_for(worker, RUNS, at)
        if network.through != network.servers:
            heir.finish()
        trial.load()
        trial.wait_for_output()
    worker.finish()
    check_output(trial)
    check_changelogs(trial)
    trial.close()
