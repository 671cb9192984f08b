"""Test `kill -9` at each step of a commit: output and store equal the truth, no store is wiped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.runtime.threads.commit import CommitStep
from tests.integration.cluster import KEYS, Topics, Worker, stored_counts
from tests.integration.worker import COMMIT_INTERVAL_MS
from tests.processes import wait_until

pytestmark = pytest.mark.sampled(1, by="broker")

RECORDS = 2_000
COMMIT = [step for step in CommitStep if step not in (CommitStep.STORING, CommitStep.RESTORING)]
"""The steps that a commit of a small store reaches."""
KILL_COMMIT = 50
"""Some 2.5 s after the start, so that most of the changelog is on disk."""
REPLAYED_MAX = KEYS * (1_000 // COMMIT_INTERVAL_MS + 2)
"""The most that a crash leaves out: an entry a key for each commit whose changes waited for a
second, for the one that would have written them, and for the killed one."""
NewWorker = Callable[..., Worker]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", COMMIT)
def test_a_worker_killed_at_any_step_of_a_commit_loses_and_doubles_nothing(
    topics: Topics, new_worker: NewWorker, tmp_path: Path, step: CommitStep
) -> None:
    worker = new_worker()
    worker.start(kill_at=step.name, kill_commit=KILL_COMMIT)
    worker.load_until_killed(topics)
    logged = sum(1 for _ in topics.messages(f"{topics.application}-counts-changelog"))
    topics.load(RECORDS)
    worker.start()
    topics.wait_for_counts(topics.loaded)
    counters = worker.finish()
    assert topics.counts() == topics.truth
    assert stored_counts(tmp_path / "state", topics.application) == topics.truth
    assert counters["restored_records"] <= REPLAYED_MAX < logged


def test_every_count_is_written_once_and_in_order_across_a_crash(
    topics: Topics, new_worker: NewWorker
) -> None:
    topics.load(RECORDS)
    worker = new_worker()
    worker.start(kill_at=CommitStep.OFFSETS_SENT.name, kill_commit=2)
    worker.load_until_killed(topics)
    worker.start()
    topics.wait_for_counts(topics.loaded)
    worker.finish()
    seen: Counter[str] = Counter()
    for key, value, _ in topics.final():
        count = int.from_bytes(value, "big")
        assert count > seen[key], f"{key}: {count} after {seen[key]}"
        seen[key] = count
    assert seen == topics.truth


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "step", [CommitStep.PROCESSED, CommitStep.PRODUCED, CommitStep.OFFSETS_SENT]
)
def test_a_stateless_copy_is_exact_across_a_crash(
    topics: Topics, new_worker: NewWorker, step: CommitStep
) -> None:
    topics.load(RECORDS)
    worker = new_worker("copy")
    worker.start(kill_at=step.name, kill_commit=2)
    worker.load_until_killed(topics)
    worker.start()
    topics.wait_for_records(topics.loaded)
    worker.finish()
    values = [pair.value.decode() for pair in topics.final()]
    assert len(values) == len(set(values))
    assert set(values) == {f"VALUE {number}" for number in range(topics.loaded)}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("step", [CommitStep.PRODUCED, CommitStep.COMMITTED])
def test_words_through_a_repartition_topic_are_exact_across_a_crash(
    topics: Topics, new_worker: NewWorker, tmp_path: Path, step: CommitStep
) -> None:
    topics.load(RECORDS)
    worker = new_worker("words")
    worker.start(kill_at=step.name, kill_commit=3)
    worker.load_until_killed(topics)
    worker.start()
    topics.wait_for_counts(2 * topics.loaded)
    worker.finish()
    truth = Counter({str(number): 1 for number in range(topics.loaded)})
    truth["value"] = topics.loaded
    assert topics.counts() == truth
    assert stored_counts(tmp_path / "state", topics.application) == truth


def test_at_least_once_doubles_what_was_produced_before_the_crash(
    topics: Topics, new_worker: NewWorker
) -> None:
    """Check that the crash matrix's verdict fails with at_least_once, as it must."""
    topics.load(RECORDS)
    worker = new_worker("copy", guarantee="at_least_once")
    worker.start(kill_at=CommitStep.PRODUCED.name, kill_commit=2)
    worker.load_until_killed(topics)
    worker.start()
    # Doubled records count towards a total before the last ones are there: wait for each of them.
    wait_until(
        lambda: len({pair.value for pair in topics.committed()}) == topics.loaded,
        what="every record to be copied",
    )
    worker.finish()
    values = [pair.value for pair in topics.committed()]
    assert len(set(values)) == topics.loaded
    assert len(values) > topics.loaded


def test_a_store_whose_directory_is_gone_is_rebuilt_from_its_changelog(
    topics: Topics, new_worker: NewWorker, tmp_path: Path
) -> None:
    topics.load(RECORDS)
    worker = new_worker()
    worker.start()
    topics.wait_for_counts(RECORDS)
    worker.finish()
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    topics.load(KEYS)
    worker.start()
    topics.wait_for_counts(RECORDS + KEYS)
    counters = worker.finish()
    assert topics.counts() == topics.truth
    assert stored_counts(tmp_path / "state", topics.application) == topics.truth
    assert counters["restored_records"] >= KEYS
