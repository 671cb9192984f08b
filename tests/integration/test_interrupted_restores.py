"""Test the restore of a large store that rebalances interrupt again and again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streams.processes.running import RunningApp
from streams.runtime.restoring.changelog_reader import StoreChangelogReader
from streams.runtime.threads.commit import CommitStep
from streams.testing.commit_steps import start_observed_app
from tests.brokers import IN_CI
from tests.changelog_offsets import account_for_changelogs
from tests.integration.cluster import PARTITIONS, Topics, Worker, stored_counts
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

RECORDS = 90_000
BATCH = 150
MORE = 1_000
"""The number of records that are restored before each rebalance."""
BATCH_S = 0.3
"""The seconds that a batch takes while others interrupt the restore, which must outlast them: its
600 batches take at least 180 s, and three workers that join and end about 20."""
ENDS = (Worker.finish, Worker.kill, Worker.finish)
"""The ways in which the other worker ends, in turn."""


def fill_changelog(topics: Topics) -> None:
    changelog = f"{topics.application}-counts-changelog"
    admin = AdminClient({"bootstrap.servers": topics.servers})
    new = NewTopic(changelog, PARTITIONS, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([new])[changelog].result(HANG_LIMIT_S)
    producer = Producer({"bootstrap.servers": topics.servers, "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce(changelog, (1).to_bytes(8, "big"), f"old-{number}", number % PARTITIONS)
    assert producer.flush(HANG_LIMIT_S) == 0
    changelogs = {"counts": changelog}
    account_for_changelogs(topics.servers, topics.application, topics.source, changelogs)


def until_restored(running: RunningApp, records: int) -> None:
    wait_until(
        lambda: running.metrics()["restored_records"] >= records, what="the restore to go on"
    )


def start_slow_worker(topics: Topics, state: Path, standbys: int, interrupted: Event) -> RunningApp:
    """Start a worker that restores slowly until `interrupted` is set."""

    def wait_before_batch(step: CommitStep) -> None:
        if step is CommitStep.RESTORING:
            interrupted.wait(BATCH_S)

    app = build(
        topics.application,
        topics.source,
        topics.target,
        kind="count",
        bootstrap_servers=topics.servers,
        state_dir=state,
        heartbeat_interval_ms=200,
        session_timeout_ms=6_000,
        commit_interval_ms=50,
        num_standby_replicas=standbys,
    )
    return start_observed_app(app, wait_before_batch)


@pytest.mark.parametrize("standbys", [0, 1])
def test_a_restore_goes_on_where_it_was_however_often_a_rebalance_interrupts_it(
    topics: Topics,
    new_worker: Callable[..., Worker],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    standbys: int,
) -> None:
    monkeypatch.setattr(StoreChangelogReader, "records_max", BATCH)
    # Tasks move at once, however far behind their state is.
    monkeypatch.setenv("MILLRACE_ACCEPTABLE_RECOVERY_LAG", str(10 * RECORDS))
    monkeypatch.setenv("MILLRACE_NUM_STANDBY_REPLICAS", str(standbys))
    fill_changelog(topics)
    interrupted = Event()
    with start_slow_worker(topics, tmp_path / "slow", standbys, interrupted) as running:

        def restored() -> int:
            return running.metrics()["restored_records"]

        def tasks() -> int:
            return running.metrics()["tasks"]

        for number, end in enumerate(ENDS):
            until_restored(running, restored() + MORE)
            other = new_worker(state=f"other-{number}", session_timeout_ms=6_000)
            other.start()
            wait_until(lambda: 0 < tasks() < PARTITIONS, what=other.log_tail)
            assert restored() < RECORDS, "the restore was over too soon to be interrupted"
            end(other)
            wait_until(lambda: tasks() == PARTITIONS, what=f"all tasks, not {tasks()}")
        interrupted.set()
        running.wait_for("RUNNING", HANG_LIMIT_S)
        # One task moves each time: of that a batch may have been polled and not loaded.
        loaded = restored() + running.metrics()["standby_records"]
        assert loaded <= RECORDS + len(ENDS) * BATCH
        topics.load(1_000)
        topics.wait_for_counts(1_000)
    counts = stored_counts(tmp_path / "slow", topics.application)
    assert {k: n for k, n in counts.items() if k.startswith("key-")} == topics.truth
    assert counts.total() == RECORDS + topics.loaded
