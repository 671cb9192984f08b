"""Workers that are thought dead and are not: they write nothing more, notice, and work again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.brokers import Broker
from tests.crashes.checks import check_changelogs, check_output, check_state
from tests.crashes.segments import Written, written
from tests.crashes.trial import PARTITIONS, CrashWorker, Trial
from tests.crashes.words import HELD_UP, RUNS, STARTS_OVER, WAITS, wait_for
from tests.processes import wait_until

SESSION_MS = 4_000
TRANSACTION_MS = 6_000
LONG_TRANSACTION_MS = 60_000
WAIT_S = 60.0
NewWorker = Callable[..., CrashWorker]


def is_stopped(process: int) -> bool:
    status = Path(f"/proc/{process}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"


def stop_at_its_point(trial: Trial, worker: CrashWorker) -> None:
    """Load until it has stopped itself in the middle of a transaction."""
    worker.aim_at(worker.pid)

    def stopped() -> bool:
        trial.load()
        return is_stopped(worker.pid)

    wait_until(stopped, timeout_s=WAIT_S, what=worker.log_tail)


def go_on(worker: CrashWorker) -> int:
    """Continue it; where its log was then."""
    at = worker.log_path.stat().st_size
    os.kill(worker.pid, signal.SIGCONT)
    return at


def all_batches(trial: Trial, broker: Broker) -> list[Written]:
    """What is in the logs of outputs and changelogs, committed or not, and the markers."""
    topics = [trial.target, trial.regrouped, *map(trial.changelog, trial.specs)]
    return [each for t in topics for each in written(broker.data_dir, t, PARTITIONS)]


def records(batches: list[Written]) -> set[Written]:
    return {each for each in batches if not each.is_marker}


def open_transactions(batches: list[Written]) -> set[int]:
    """Producer ids whose last batch in a partition is not a marker."""
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


def test_a_zombie_whose_only_work_is_a_punctuation_commits_none_of_it(
    trial: Trial, new_worker: NewWorker, tmp_path: Path
) -> None:
    """Its transaction is open still and no input has moved on: only the group can refuse it."""
    settings = {"kind": "ticking", "session": SESSION_MS, "transaction": LONG_TRANSACTION_MS}
    zombie = new_worker(trial, state=tmp_path / "zombie", **settings)
    zombie.start("PRODUCED:3", number="SIGSTOP")
    zombie.aim_at(zombie.pid)
    wait_until(lambda: is_stopped(zombie.pid), timeout_s=WAIT_S, what=zombie.log_tail)
    heir = new_worker(trial, state=tmp_path / "heir", **settings)
    heir.start()
    wait_for(heir, HELD_UP)
    at = go_on(zombie)
    wait_for(zombie, STARTS_OVER, at)
    wait_for(zombie, RUNS, at)
    wait_for(heir, RUNS)
    ticks_then = sum(map(len, trial.read_output().values()))
    wait_until(
        lambda: sum(map(len, trial.read_output().values())) > ticks_then + 10,
        timeout_s=WAIT_S,
        what="more ticks",
    )
    for worker in (zombie, heir):
        worker.finish()
    for task, ticks in trial.read_output().items():
        assert ticks == list(range(1, len(ticks) + 1)), task


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
