"""The verdicts of a trial: each compares what is there with a plain loop over the input."""

from __future__ import annotations

from tests.crashes import truth
from tests.crashes.trial import Trial


def check_output(trial: Trial) -> None:
    """All that is loaded has its place in the output, once and in order."""
    assert trial.output == truth.output(trial.given)
    for remainder, counts in trial.counts.items():
        assert counts == sorted(set(counts)), f"counts of {remainder}"


def check_changelogs(trial: Trial) -> None:
    """What replaying each changelog gives is the truth."""
    for store, log in trial.changelogs().items():
        expected = truth.of(store)(trial.given)
        assert trial.replay(store, log, expected) == expected, f"changelog of {store}"


def check_state(trial: Trial) -> None:
    """Disks and changelogs are the truth, once no worker runs."""
    check_changelogs(trial)
    for store, spec in trial.specs.items():
        if spec.persistent:
            expected = truth.of(store)(trial.given)
            assert trial.stored(store, expected) == expected, f"disk of {store}"
