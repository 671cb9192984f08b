"""Test that workers that only seem dead write nothing more, notice it, and work again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.crashes import ticking
from tests.crashes.bugs import departed_transactions_left_open
from tests.crashes.checks import check_changelogs, check_output, check_state
from tests.crashes.segments import Written, written
from tests.crashes.trial import PARTITIONS, CrashWorker, Trial
from tests.crashes.words import HELD_UP, RUNS, STARTS_OVER, WAITS, wait_for
from tests.processes import wait_until

pytestmark = pytest.mark.sampled(1, by="broker")

SESSION_MS = 4_000
TRANSACTION_MS = 6_000
LONG_TRANSACTION_MS = 60_000
PUNCTUATED = ("PROCESSED:3", "PRODUCED:3")
TICKS = 10
TASKS = ["0_0", "0_1"]
WAIT_S = 60.0
NewWorker = Callable[..., CrashWorker]


def is_stopped(process: int) -> bool:
    status = Path(f"/proc/{process}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"


def stop_at_its_point(trial: Trial, worker: CrashWorker) -> None:
    """Load until the worker has stopped itself in the middle of a transaction."""
    worker.aim_at(worker.pid)

    def stopped() -> bool:
        trial.load()
        return is_stopped(worker.pid)

    wait_until(stopped, timeout_s=WAIT_S, what=worker.log_tail)


def go_on(worker: CrashWorker) -> int:
    """Continue the worker and return where its log was then."""
    at = worker.log_path.stat().st_size
    os.kill(worker.pid, signal.SIGCONT)
    return at


def all_batches(trial: Trial, broker: Broker) -> list[Written]:
    """Return all batches in the logs of outputs and changelogs: committed or not, and markers."""
    topics = [trial.target, trial.regrouped, *map(trial.changelog, trial.specs)]
    return [each for t in topics for each in written(broker.data_dir, t, PARTITIONS)]


def records(batches: list[Written]) -> set[Written]:
    return {each for each in batches if not each.is_marker}


def open_transactions(batches: list[Written]) -> set[int]:
    """Return the producer ids whose last batch in a partition is not a marker."""
    last = {(b.topic, b.partition, b.producer_id): b for b in batches}
    return {each.producer_id for each in last.values() if not each.is_marker}


def test_zombies_write_nothing_more_and_come_back(
    trial: Trial, new_worker: NewWorker, broker: Broker, tmp_path: Path
) -> None:
    settings = {"session": SESSION_MS, "transaction": TRANSACTION_MS}
    zombies = []
    for point in ("PRODUCED:1", "OFFSETS_SENT:1"):
        zombies.append(new_worker(trial, state=tmp_path / point, **settings))
        zombies[-1].start(point, number="SIGSTOP")
        wait_for(zombies[-1], RUNS)
    trial.load()
    trial.wait_for_output()
    for zombie in zombies:
        stop_at_its_point(trial, zombie)
    theirs = {(b.producer_id, b.epoch) for b in records(all_batches(trial, broker))}
    ids = {producer_id for producer_id, _ in theirs}
    heir = new_worker(trial, state=tmp_path / "heir", **settings)
    heir.start()
    trial.wait_for_output()
    # Before the coordinator has ended it, the transaction of a zombie may go on, and be refused.
    wait_until(
        lambda: not open_transactions(all_batches(trial, broker)) & ids,
        timeout_s=WAIT_S,
        what="the coordinator to end the transactions of the zombies",
    )
    before = records(all_batches(trial, broker))
    logs_at = [go_on(zombie) for zombie in zombies]
    for zombie, at in zip(zombies, logs_at, strict=True):
        wait_for(zombie, STARTS_OVER, at)
        wait_for(zombie, RUNS, at)
    trial.load()
    trial.wait_for_output()
    late = records(all_batches(trial, broker)) - before
    assert late
    assert not [each for each in late if (each.producer_id, each.epoch) in theirs]
    for worker in (*zombies, heir):
        worker.finish()
    check_output(trial)
    check_changelogs(trial)


def resume_a_punctuating_zombie(
    trial: Trial,
    new_worker: NewWorker,
    broker: Broker,
    directory: Path,
    point: str,
    *,
    zombie_bug: str | None = None,
    heir_bug: str | None = None,
) -> None:
    """Check that a worker stopped in a transaction with only punctuations doubles no tick.

    It is continued when another worker has its tasks. Each tick is in the output once and in order.
    The zombie's transaction is open until the other worker aborts it. That has the tasks when it
    has ticked on; or, where it leaves the transaction open and the changelogs have ticks of it,
    when it waits for its end.
    """
    settings: dict[str, object] = {"kind": "ticking", "session": SESSION_MS}
    settings["transaction"] = LONG_TRANSACTION_MS
    planted: list[dict[str, object]] = [
        {} if bug is None else {"bug": bug} for bug in (zombie_bug, heir_bug)
    ]
    zombie = new_worker(trial, state=directory / "zombie", **settings, **planted[0])
    heir = new_worker(trial, state=directory / "heir", **settings, **planted[1])
    zombie.start(point, number="SIGSTOP")
    wait_until(
        lambda: sum(map(len, trial.read_output().values())) > TICKS,
        timeout_s=WAIT_S,
        what=zombie.log_tail,
    )
    zombie.aim_at(zombie.pid)
    wait_until(lambda: is_stopped(zombie.pid), timeout_s=WAIT_S, what=zombie.log_tail)
    theirs = {batch.producer_id for batch in logged_ticks(trial, broker)}
    assert len(theirs) == 1, "one producer has written until now"

    def heir_ticks() -> int:
        return sum(batch.producer_id not in theirs for batch in logged_ticks(trial, broker))

    heir.start()
    if point.startswith("PRODUCED") and heir_bug == departed_transactions_left_open.__name__:
        wait_for(heir, HELD_UP)
    else:
        wait_until(lambda: heir_ticks() > TICKS, timeout_s=WAIT_S, what=heir.log_tail)
    at = go_on(zombie)
    wait_for(zombie, STARTS_OVER, at)
    wait_for(zombie, RUNS, at)
    wait_for(heir, RUNS)
    ticks_then = sum(map(len, trial.read_output().values()))
    wait_until(
        lambda: sum(map(len, trial.read_output().values())) > ticks_then + TICKS,
        timeout_s=WAIT_S,
        what="more ticks",
    )
    for worker in (zombie, heir):
        worker.finish()
    output = trial.read_output()
    assert sorted(output) == TASKS
    for task, ticks in output.items():
        assert ticks == list(range(1, len(ticks) + 1)), f"ticks of {task}"


def logged_ticks(trial: Trial, broker: Broker) -> list[Written]:
    """Return what was written into the changelog of the ticks, without the markers."""
    batches = written(broker.data_dir, trial.changelog(ticking.STORE), PARTITIONS)
    return [each for each in batches if not each.is_marker]


@pytest.mark.parametrize("heir_bug", [None, departed_transactions_left_open])
@pytest.mark.parametrize("point", PUNCTUATED)
def test_a_zombie_whose_only_work_is_a_punctuation_commits_none_of_it(
    trial: Trial,
    new_worker: NewWorker,
    broker: Broker,
    tmp_path: Path,
    point: str,
    heir_bug: Callable[[], None] | None,
) -> None:
    """Check that none of the zombie's open transaction counts, though no input has moved on.

    What keeps its ticks from counting:

    stopped at   its changelogs            guards, of which any suffices
    PROCESSED    have nothing of it yet    the generation in its offsets;
                                           the leader aborts transactions of who is no member
    PRODUCED     have its ticks            both of these;
                                           no store is restored past an open transaction

    `test_planted` takes away all guards of a row, and sees ticks doubled.
    """
    named = None if heir_bug is None else heir_bug.__name__
    resume_a_punctuating_zombie(trial, new_worker, broker, tmp_path, point, heir_bug=named)


def test_two_processes_share_a_state_directory_and_one_of_them_is_a_zombie(
    trial: Trial, new_worker: NewWorker
) -> None:
    """The zombie holds the locks of its tasks' directories: they are waited for, and then had."""
    settings = {"session": SESSION_MS, "transaction": TRANSACTION_MS}
    zombie, other = new_worker(trial, **settings), new_worker(trial, **settings)
    zombie.start("PRODUCED:1", number="SIGSTOP")
    wait_for(zombie, RUNS)
    other.start()
    wait_for(other, RUNS)
    slots = {path.parent.name for path in (trial.state / trial.application).glob("process-*/id")}
    assert slots == {"process-0", "process-1"}
    trial.load()
    trial.wait_for_output()
    stop_at_its_point(trial, zombie)
    wait_for(other, WAITS, other.log_path.stat().st_size)
    began = time.monotonic()
    at = go_on(zombie)
    trial.wait_for_output()
    wait_for(zombie, RUNS, at)
    assert time.monotonic() - began < WAIT_S / 2
    for _ in range(2):  # tasks go from one to the other and back, each time on the same files
        other.finish()
        trial.load()
        trial.wait_for_output()
        at = other.log_path.stat().st_size
        other.start()
        wait_for(other, RUNS, at)
        trial.load()
        trial.wait_for_output()
    zombie.finish()
    other.finish()
    check_output(trial)
    check_state(trial)
