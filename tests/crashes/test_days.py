"""Test that days between a kill and what comes after it cost no record and no state.

Producers and transactional ids are forgotten, records of changelogs are older than any retention,
logs are cleaned; offsets are kept, since no stop is longer than they are. In the end one is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers import choose_own
from tests.crashes.checks import check_output, check_state
from tests.crashes.days import Days
from tests.crashes.test_crash_matrix import COMMIT, WRITES, load_until
from tests.crashes.trial import CrashWorker, Trial
from tests.processes import wait_until
from tests.sampling import draw_sample

pytestmark = pytest.mark.sampled(1, by="broker")

VICTIMS = ("worker", "broker")
LOADS = 3
SESSION_MS = 4_000
FIRST = ("PROCESSED:1", "PRODUCED:1", "OFFSETS_SENT:1", "COMMITTED:1", "STORED:1", "STORING:3")
"""Steps of the first commit: its records are there before the worker is."""
STEPS_SAMPLED = {"embedded": 2, "kafka": 1}
A_HALF, SOME, TOO_MANY = 0.5, 5, 8
"""Days: a store is still caught up; it may be rebuilt; offsets of an empty group expire."""
ELSEWHERE_EVERY = 4


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> str:
    """Return the kind of the broker, which is started by `days` with settings of its own."""
    return choose_own(request.param)


@pytest.fixture(scope="module")
def days(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Days]:
    made = Days(broker, tmp_path_factory.mktemp("days"))
    yield made
    made.broker.close()


@pytest.fixture
def lasting(days: Days, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Trial]:
    made = days.new_trial(unique("days"), tmp_path / "state")
    yield made
    made.close()


@pytest.mark.parametrize("victim", draw_sample("victims of days", VICTIMS, 1))
def test_days_after_a_kill_at_any_step_lose_and_double_nothing(
    days: Days,
    lasting: Trial,
    new_worker: Callable[..., CrashWorker],
    broker: str,
    victim: str,
) -> None:
    kill = {"worker": kill_worker, "broker": kill_broker}[victim]
    kill(days, lasting, new_worker, broker)


def kill_worker(
    days: Days, lasting: Trial, new_worker: Callable[..., CrashWorker], broker: str
) -> None:
    """Kill the worker at each step, and start it again after days, at times on another machine."""
    worker = new_worker(lasting, session=SESSION_MS, **days.worker_options)
    points = draw_sample(f"days {broker}", (*COMMIT, *WRITES), STEPS_SAMPLED[broker])
    for number, point in enumerate(points):
        worker.start(point)
        for _ in range(LOADS):
            load_and_wait(lasting, worker)
        worker.aim_at(worker.pid)
        load_until(lasting, lambda: worker.ended is not None, worker.log_tail)
        assert worker.ended == -9, f"{point}: {worker.log_tail()}"
        lasting.deliver()
        if number % 2:
            days.pass_days(A_HALF)
        else:
            days.pass_days(SOME)
            days.wait_until_forgotten(lasting)
        if number % ELSEWHERE_EVERY == 0:
            shutil.rmtree(lasting.state)
    worker.start()
    load_and_wait(lasting, worker)
    days.expire_input(lasting)
    days.pass_days(TOO_MANY)  # it is a member: its offsets don't expire
    load_and_wait(lasting, worker)
    worker.finish()
    check_output(lasting)
    check_state(lasting)
    if days.is_shifted:
        check_refusal(days, lasting, worker)


def load_and_wait(trial: Trial, worker: CrashWorker) -> None:
    """Load some records and wait for the output, unless the worker ends with an error."""
    trial.load()
    trial.wait_for_output(unless=lambda: worker.ended is not None)
    assert worker.ended is None, worker.log_tail()


def check_refusal(days: Days, trial: Trial, worker: CrashWorker) -> None:
    """Check that an application refuses whose offsets have expired, and changes nothing."""
    days.wait_until_empty(trial)
    days.pass_days(TOO_MANY)
    days.wait_until_offsets_expire(trial)
    worker.start()
    wait_until(lambda: worker.ended is not None, what=worker.log_tail)
    assert worker.ended == 1, worker.log_tail()
    assert "has no committed offset" in worker.log_tail()
    check_output(trial)
    check_state(trial)


def kill_broker(
    days: Days, lasting: Trial, new_worker: Callable[..., CrashWorker], broker: str
) -> None:
    """Kill the broker at each step, and start it again after days, in which the worker waits."""
    # Kafka may forget what it was killed at: decision 0035.
    after = {"after": "markers"} if broker == "kafka" else {}
    worker = new_worker(lasting, session=SESSION_MS, **after, **days.worker_options)
    for point in draw_sample(f"days of the broker {broker}", FIRST, STEPS_SAMPLED[broker]):
        lasting.load()
        worker.start(point)
        worker.aim_at(days.broker.pid)
        wait_until(lambda: days.broker.ended is not None, what=worker.log_tail)
        days.pass_days(SOME)
        days.broker.restart()
        for _ in range(LOADS):
            load_and_wait(lasting, worker)
        worker.finish()
    check_output(lasting)
    check_state(lasting)
