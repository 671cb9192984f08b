"""The verdicts of a trial see what they are for: each is given one thing that is wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from tests.crashes.checks import check_changelogs, check_not_wiped, check_output, check_state
from tests.crashes.test_crash_matrix import WARM_UP, load
from tests.crashes.trial import CrashWorker, Trial


def test_a_record_that_is_lost_or_doubled_and_a_store_that_was_wiped_are_seen(
    trial: Trial, new_worker: Callable[..., CrashWorker]
) -> None:
    worker = new_worker(trial)
    worker.start()
    load(trial, WARM_UP)
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
            check_not_wiped(trial, worker.replayed)
