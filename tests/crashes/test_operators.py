"""Test that two workers that run every operator of the DSL survive kills at each commit step.

What comes out is what a plain loop over the input gives, nothing lost and nothing doubled, and the
stores on disk are what their changelogs say.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.brokers import Broker
from tests.crashes.operators import expiring, joined, windowed
from tests.crashes.operators.course import WORKERS, Course
from tests.crashes.trial import CrashWorker
from tests.crashes.words import RUNS, wait_for

WARM_UP = 3
LOADS_MAX = 50
POINTS: dict[str, tuple[str, ...]] = {
    "embedded": ("PROCESSED:2", "PRODUCED:3", "OFFSETS_SENT:2", "COMMITTED:3", "STORING:7"),
    "kafka": ("OFFSETS_SENT:2", "STORING:7"),
}
RESTORE = "RESTORING:5"
APPLICATIONS: dict[str, Any] = {
    "windowed": windowed,
    "joined": joined,
    "expiring": expiring,
}


@pytest.fixture(params=APPLICATIONS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def course(
    broker: Broker, unique: Callable[[str], str], tmp_path: Path, kind: str
) -> Iterator[Course]:
    made = Course(broker.bootstrap_servers, unique(kind), tmp_path / "state", APPLICATIONS[kind])
    yield made
    made.close()


@pytest.mark.sampled(1)
def test_every_operator_loses_and_doubles_nothing_when_its_workers_are_killed(
    broker: Broker, course: Course, new_worker: Callable[..., CrashWorker], kind: str
) -> None:
    points = POINTS[broker.kind]
    workers = [new_worker(course, kind=kind) for _ in range(WORKERS)]
    for worker, point in zip(workers, points, strict=False):
        worker.start(point)
    for _ in range(WARM_UP):
        course.load()
        course.wait()
    for number in range(len(points)):
        worker = workers[number % WORKERS]
        wait_for(worker, RUNS, worker.began_at)  # the other alone would let all records pass
        worker.aim_at(worker.pid)
        load_until_killed(course, worker)
        worker.start(*points[number + WORKERS :][:1])
    course.load()
    course.wait()
    restore_everything(course, workers)
    course.load()
    course.wait()
    course.end()
    for worker in workers:
        worker.finish()
    course.read_to_the_end()
    course.check()
    course.check_stores()
    check_the_verdicts(course)


def restore_everything(course: Course, workers: list[CrashWorker]) -> None:
    """Restore all stores from their changelogs alone, with a worker killed in the middle.

    That one begins by itself: beside another it might get tasks whose stores are restored already.
    """
    for worker in workers:
        worker.finish()
    shutil.rmtree(course.state)
    workers[0].start(RESTORE)
    workers[0].aim_at(workers[0].pid)
    load_until_killed(course, workers[0])
    for worker in workers:
        worker.start()


def check_the_verdicts(course: Course) -> None:
    """Check that the verdicts see a lost result, a doubled one, and a key that a store lacks."""
    for operator in course.exactly_once():
        values = course.any_result(operator)
        kept = values.copy()
        for wrong in (kept[:-1], [*kept, kept[-1]]):
            values[:] = wrong
            with pytest.raises(AssertionError, match=f"^{operator}: "):
                course.check()
        values[:] = kept
    store = course.lose_a_key()
    with pytest.raises(AssertionError, match=f"^disk of {store} "):
        course.check_stores()


def load_until_killed(course: Course, worker: CrashWorker) -> None:
    for _ in range(LOADS_MAX):
        course.load()
        course.wait(unless=lambda: worker.ended is not None)
        if worker.ended is not None:
            assert worker.ended == -9, worker.log_tail()
            return
    raise AssertionError(f"no crash\n{worker.log_tail()}")
