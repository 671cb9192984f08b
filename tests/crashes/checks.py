"""Check a trial: compare each result with that of a plain loop over the input."""

from __future__ import annotations

from streams.graph.nodes import StoreKind
from tests.crashes import truth
from tests.crashes.trial import BATCH, Trial

LEFT_OUT_MAX = 2 * 2 * BATCH
"""What a few loads write into a changelog at most: see `check_not_wiped`."""
_ENTRIES_OF_A_SESSION = 2
"""A session that grows is removed and put; a record changes one entry of any other store."""


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


def check_not_wiped(trial: Trial, replayed: dict[str, int], loaded: int) -> None:
    """Check that no store on disk replayed more than a crash can have left out.

    `loaded` is the number of records that were loaded while the worker ran that crashed: of a store
    whose changes wait a second, none of them need be on the disk. All of the changelog would be
    more: that is what the stores in memory needed.
    """
    for store, spec in trial.specs.items():
        entries = loaded * (_ENTRIES_OF_A_SESSION if spec.kind is StoreKind.SESSION else 1)
        if spec.persistent:
            assert replayed.get(store, 0) <= entries, f"{store}: {replayed}, {loaded} loaded"
        else:
            assert replayed[store] > entries, f"{store}: {replayed}, {loaded} loaded"


def check_restored_once(trial: Trial, before: dict[str, int], after: dict[str, int]) -> None:
    """Check that no store on disk was given a record twice."""
    on_disk = [store for store, spec in trial.specs.items() if spec.persistent]
    logs = trial.changelogs()
    for store in on_disk:
        logged = sum(map(len, logs[store]))
        assert before[store] + after.get(store, 0) <= logged, f"{store}: {before}, {after}"
