"""Test `kill -9` of worker and broker at each step, with a store of every kind: state is the truth.

One application goes through all of the crashes, one after the other: each start recovers from the
last crash and ends in the next. After each the output is what a plain loop over the input gives,
and the records that were replayed into the stores on disk are no more than one crash can have left
out: a store that was wiped would need all of them. In the end what the stores have on disk, and
what replaying the committed changelogs gives, must be the truth too: every value depends on all
before it, so that nothing heals.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from tests.brokers import Broker
from tests.crashes.checks import (
    LEFT_OUT_MAX,
    check_not_wiped,
    check_output,
    check_restored_once,
    check_state,
)
from tests.crashes.trial import CrashWorker, Trial
from tests.processes import ServerProcess
from tests.sampling import draw_sample

LOADS_MAX = 50
WARM_UP = 12
COMMIT = ("PROCESSED:2", "PRODUCED:2", "OFFSETS_SENT:2", "COMMITTED:2", "STORED:2")
WRITES = ("STORING:1", "STORING:5", "STORING:9", "STORING:13", "STORING:17")
"""A commit writes the stores of a task one after the other, each in several batches."""
RESTORE = ("RESTORING:10", "RESTORING:5")
STEPS_SAMPLED = 3
"""Steps at which each test kills where a sample is taken."""


def load(trial: Trial) -> None:
    trial.load()
    trial.wait_for_output()


def warm_up(trial: Trial) -> None:
    """Load until each changelog holds more than a crash can leave out.

    How many records a load adds to one depends on the number of commits that it takes.
    """
    for _ in range(LOADS_MAX // WARM_UP):
        for _ in range(WARM_UP):
            load(trial)
        logs = trial.changelogs().values()
        if min(sum(map(len, partitions)) for partitions in logs) > LEFT_OUT_MAX:
            return
    raise AssertionError(f"a changelog is short after {LOADS_MAX} loads")


def load_until(trial: Trial, happened: Callable[[], bool], log: Callable[[], str]) -> None:
    """Load bit by bit, each when the last is processed, until the crash has happened."""
    for _ in range(LOADS_MAX):
        trial.load(unless=happened)  # a broker may be killed while it is loaded
        trial.wait_for_output(unless=happened)
        if happened():
            return
    raise AssertionError(f"no crash\n{log()}")


@pytest.mark.parametrize(
    ("guarantee", "points"),
    [
        ("exactly_once_v2", (*COMMIT, *WRITES)),
        ("exactly_once", ("PRODUCED:2", "OFFSETS_SENT:3", "COMMITTED:6", "STORING:9")),
    ],
)
def test_a_worker_killed_at_any_step_leaves_stores_that_catch_up_to_the_truth(
    trial: Trial,
    new_worker: Callable[..., CrashWorker],
    broker: Broker,
    guarantee: str,
    points: tuple[str, ...],
) -> None:
    worker = new_worker(trial, guarantee)
    worker.start()
    warm_up(trial)
    worker.finish()
    began = len(trial.given)
    for point in draw_sample(f"steps {guarantee} {broker.kind}", points, STEPS_SAMPLED):
        worker.start(point)
        loaded_before = len(trial.given) - began
        began += loaded_before
        load(trial)
        check_not_wiped(trial, worker.replayed, loaded_before)
        worker.aim_at(worker.pid)
        load_until(trial, lambda: worker.ended is not None, worker.log_tail)
        assert worker.ended == -9, f"{point}: {worker.log_tail()}"
    worker.start()
    loaded_before = len(trial.given) - began
    load(trial)
    worker.finish()
    check_output(trial)
    check_state(trial)
    check_not_wiped(trial, worker.replayed, loaded_before)


def test_a_worker_killed_in_the_middle_of_a_restore_goes_on_where_it_was(
    trial: Trial, new_worker: Callable[..., CrashWorker]
) -> None:
    worker = new_worker(trial)
    worker.start()
    warm_up(trial)
    worker.finish()
    shutil.rmtree(trial.state)
    restored = dict.fromkeys(trial.specs, 0)
    for point in RESTORE:
        worker.start(point)
        worker.aim_at(worker.pid)
        load_until(trial, lambda: worker.ended is not None, worker.log_tail)
        assert worker.ended == -9, f"{point}: {worker.log_tail()}"
        restored = {store: restored[store] + worker.replayed.get(store, 0) for store in restored}
    worker.start()
    load(trial)
    worker.finish()
    assert any(restored[store] for store, spec in trial.specs.items() if spec.persistent), restored
    check_output(trial)
    check_state(trial)
    check_restored_once(trial, restored, worker.replayed)


def test_a_broker_killed_at_any_step_leaves_stores_that_catch_up_to_the_truth(
    trial: Trial, new_worker: Callable[..., CrashWorker], broker: Broker
) -> None:
    assert isinstance(broker, ServerProcess)
    steps = f"steps of the broker {broker.kind}"
    points = draw_sample(steps, (*COMMIT, WRITES[0]), STEPS_SAMPLED)
    # Kafka may forget what it was killed at: decision 0035.
    worker = new_worker(trial, **({"after": "markers"} if broker.kind == "kafka" else {}))
    worker.start(*points)
    warm_up(trial)
    for _ in points:
        crash_broker(trial, worker, broker)
    worker.finish()
    check_output(trial)
    check_state(trial)
    on_disk = {store for store, spec in trial.specs.items() if spec.persistent}
    left_out = {store: worker.replayed.get(store, 0) for store in on_disk}
    assert max(left_out.values()) <= LEFT_OUT_MAX * len(points), left_out


def crash_broker(trial: Trial, worker: CrashWorker, broker: ServerProcess) -> None:
    worker.aim_at(broker.pid)
    load_until(trial, lambda: broker.ended is not None, worker.log_tail)
    broker.restart()  # type: ignore[attr-defined]
    load(trial)


def test_a_broker_killed_in_the_middle_of_a_restore_is_waited_for(
    trial: Trial, new_worker: Callable[..., CrashWorker], broker: Broker
) -> None:
    assert isinstance(broker, ServerProcess)
    worker = new_worker(trial)
    worker.start()
    warm_up(trial)
    worker.finish()
    shutil.rmtree(trial.state)
    worker.start(RESTORE[0])
    crash_broker(trial, worker, broker)
    worker.finish()
    check_output(trial)
    check_state(trial)
    check_restored_once(trial, dict.fromkeys(trial.specs, 0), worker.replayed)
