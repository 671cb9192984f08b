"""Check a trial: compare each result with that of a plain loop over the input."""

from __future__ import annotations

from tests.crashes import truth
from tests.crashes.trial import BATCH, Trial

LEFT_OUT_MAX = 2 * 2 * BATCH
"""At most two loads are in what a crash leaves out; a record writes at most two entries (a session
that grows is removed and put)."""


def check_output(trial: Trial) -> None:
    """Check that all that is loaded is in the output once and in order, with nothing behind it.

    No worker may run.
    """
    totals, counts = trial.read_whole_output()
    assert totals == truth.output(trial.given)
    for remainder, seen in counts.items():  # of the counts within a commit the last comes out
        assert seen == sorted(set(seen)), f"counts of {remainder}"
    assert {each: seen[-1] for each, seen in counts.items()} == truth.regrouped(trial.given)


def check_changelogs(trial: Trial) -> None:
    """Check that each changelog, replayed, gives the truth."""
    for store, log in trial.changelogs().items():
        expected = truth.of(store)(trial.given)
        assert trial.replay(store, log, expected) == expected, f"changelog of {store}"


def check_state(trial: Trial) -> None:
    """Check that disks and changelogs hold the truth, once no worker runs."""
    check_changelogs(trial)
    for store, spec in trial.specs.items():
        if spec.persistent:
            expected = truth.of(store)(trial.given)
            assert trial.stored(store, expected) == expected, f"disk of {store}"


def check_not_wiped(trial: Trial, replayed: dict[str, int]) -> None:
    """Check that no store on disk replayed more than a crash can have left out.

    All of the changelog would be more: that is what the stores in memory needed.
    """
    for store, spec in trial.specs.items():
        if spec.persistent:
            assert replayed.get(store, 0) <= LEFT_OUT_MAX, f"{store}: {replayed}"
        else:
            assert replayed[store] > LEFT_OUT_MAX, f"{store}: {replayed}"


def check_restored_once(trial: Trial, before: dict[str, int], after: dict[str, int]) -> None:
    """Check that no store on disk was given a record twice."""
    on_disk = [store for store, spec in trial.specs.items() if spec.persistent]
    logs = trial.changelogs()
    for store in on_disk:
        logged = sum(map(len, logs[store]))
        assert before[store] + after.get(store, 0) <= logged, f"{store}: {before}, {after}"
