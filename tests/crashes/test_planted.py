"""Test that a trial's verdicts see each planted fault.

Each trial is given one thing that is wrong, or a worker from which a guard was taken away.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.crashes.bugs import (
    departed_transactions_and_offsets_left_alone,
    departed_transactions_left_open,
    generation_not_sent,
    punctuation_commits_no_offsets,
    restore_stops_at_the_last_stable_offset,
    unproven_restore_stops_at_the_last_stable_offset,
)
from tests.crashes.checks import check_changelogs, check_not_wiped, check_output, check_state
from tests.crashes.test_crash_matrix import load, warm_up
from tests.crashes.test_zombies import PUNCTUATED, resume_a_punctuating_zombie
from tests.crashes.trial import BATCH, CrashWorker, Trial

pytestmark = pytest.mark.sampled(1, by="broker")

PROCESSED, PRODUCED = PUNCTUATED


def test_a_record_that_is_lost_or_doubled_and_a_store_that_was_wiped_are_seen(
    trial: Trial, new_worker: Callable[..., CrashWorker]
) -> None:
    worker = new_worker(trial)
    worker.start()
    warm_up(trial)
    worker.finish()
    check_output(trial)
    check_state(trial)
    taken = trial.given.pop(100)
    for check in (check_output, check_changelogs, check_state):
        with pytest.raises(AssertionError):
            check(trial)
    trial.given.insert(100, taken)
    trial.given.insert(100, taken)
    for check in (check_output, check_changelogs, check_state):
        with pytest.raises(AssertionError):
            check(trial)
    del trial.given[100]
    for store in (store for store, spec in trial.specs.items() if spec.persistent):
        for path in (trial.state / trial.application).glob(f"*_*/{store}"):
            shutil.rmtree(path)
        worker.start()
        load(trial)
        worker.finish()
        with pytest.raises(AssertionError, match=f"^{store}: "):
            check_not_wiped(trial, worker.replayed, loaded=BATCH)
    check_output(trial)
    trial.produce_again()
    with pytest.raises(AssertionError):
        check_output(trial)


@pytest.mark.parametrize(
    ("point", "zombie_bug", "heir_bug"),
    [
        (PROCESSED, generation_not_sent, departed_transactions_left_open),
        (
            PROCESSED,
            punctuation_commits_no_offsets,
            departed_transactions_and_offsets_left_alone,
        ),
        (PRODUCED, generation_not_sent, restore_stops_at_the_last_stable_offset),
        (
            PRODUCED,
            punctuation_commits_no_offsets,
            unproven_restore_stops_at_the_last_stable_offset,
        ),
    ],
)
def test_a_zombie_that_nobody_refuses_is_seen_by_its_ticks(
    trial: Trial,
    new_worker: Callable[..., CrashWorker],
    broker: Broker,
    tmp_path: Path,
    point: str,
    zombie_bug: Callable[[], None],
    heir_bug: Callable[[], None],
) -> None:
    with pytest.raises(AssertionError, match=r"^ticks of "):
        resume_a_punctuating_zombie(
            trial,
            new_worker,
            broker,
            tmp_path,
            point,
            zombie_bug=zombie_bug.__name__,
            heir_bug=heir_bug.__name__,
        )
