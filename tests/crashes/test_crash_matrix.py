"""`kill -9` of worker and broker at each step, with a store of every kind: state equals the truth.

After each crash the worker is started again (or goes on, where the broker was the one), more is
loaded, and in the end the output, what the stores have on disk, and what replaying the committed
changelogs gives must all be what a plain loop over the input gives. The records that were replayed
are counted: a store on disk that was wiped would need all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streams.runtime.commit import Step
from tests.brokers import Broker
from tests.crashes import truth
from tests.crashes.trial import CrashWorker, Trial
from tests.processes import ServerProcess

COMMITS = 12
LOADS_MAX = 50


@pytest.fixture
def trial(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Trial]:
    made = Trial(broker.bootstrap_servers, unique("crash"), tmp_path / "state")
    yield made
    made.close()


@pytest.fixture
def worker(trial: Trial) -> Iterator[CrashWorker]:
    made = CrashWorker(trial)
    yield made
    made.kill()
    made.close()


def load_until(trial: Trial, happened: Callable[[], bool], log: Callable[[], str]) -> None:
    """Load bit by bit, each when the last is processed, until the crash has happened."""
    for _ in range(LOADS_MAX):
        trial.load()
        trial.wait_for_output(unless=happened)
        if happened():
            return
    raise AssertionError(f"no crash\n{log()}")


def check(trial: Trial) -> None:
    """Output, disks and changelogs are the truth."""
    assert trial.output == truth.output(trial.given)
    for store, spec in trial.specs.items():
        expected = truth.of(store)(trial.given)
        assert trial.logged(store, expected) == expected, f"changelog of {store}"
        if spec.persistent:
            assert trial.stored(store, expected) == expected, f"disk of {store}"


def check_not_wiped(trial: Trial, replayed: dict[str, int]) -> None:
    """Into a store on disk was replayed what one transaction may have left out: far less than its
    twin in memory needed, which a store that had been emptied would have needed too."""
    for store in (store for store, spec in trial.specs.items() if spec.persistent):
        twin = replayed[f"{store}-in-memory"]
        assert replayed.get(store, 0) <= twin / 4, f"{store}: {replayed}"


@pytest.mark.parametrize("step", Step)
def test_a_worker_killed_at_any_step_leaves_stores_that_catch_up_to_the_truth(
    trial: Trial, worker: CrashWorker, step: Step
) -> None:
    worker.start()
    for _ in range(COMMITS):
        trial.load()
        trial.wait_for_output()
    worker.finish()
    worker.start(kill_at=step.name, number=3)
    load_until(trial, lambda: worker.ended is not None, worker.log_tail)
    assert worker.ended == -9, worker.log_tail()
    worker.start()
    trial.load()
    trial.wait_for_output()
    replayed = worker.finish()
    check(trial)
    check_not_wiped(trial, replayed)


@pytest.mark.parametrize("step", [step for step in Step if step is not Step.RESTORING])
def test_a_broker_killed_at_any_step_leaves_stores_that_catch_up_to_the_truth(
    trial: Trial, worker: CrashWorker, broker: Broker, step: Step
) -> None:
    assert isinstance(broker, ServerProcess)
    worker.start(kill_at=step.name, number=3, victim=broker.pid)
    load_until(trial, lambda: broker.ended is not None, worker.log_tail)
    broker.restart()
    trial.load()
    trial.wait_for_output()
    worker.finish()
    check(trial)
