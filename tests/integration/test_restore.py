"""Restores with real clients: moved in the middle, behind open transactions, to the very end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from streams.running import RunningApp
from streams.runtime.commit import Step
from tests.integration.cluster import KEYS, PARTITIONS, Topics, Worker, stored_counts
from tests.integration.worker import build
from tests.processes import wait_until


def started(topics: Topics, state: Path) -> RunningApp:
    return build(
        topics.application,
        topics.source,
        topics.target,
        kind="count",
        bootstrap_servers=topics.servers,
        state_dir=state,
        heartbeat_interval_ms=200,
        session_timeout_ms=15_000,
        commit_interval_ms=50,
    ).start()


def left_open(topics: Topics, changelog: str) -> Producer:
    """A transaction of a stray producer with a record at the end of each changelog partition."""
    producer = Producer(
        {
            "bootstrap.servers": topics.servers,
            "transactional.id": f"{topics.application}-stray",
            "transaction.timeout.ms": 60_000,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        for key in range(KEYS):
            producer.produce(changelog, b"wrong", f"key-{key}", partition)
    assert producer.flush(30) == 0
    return producer


def until_restored(running: RunningApp, records: int) -> None:
    def restored() -> int:
        return running.metrics()["restored_records"]

    wait_until(lambda: restored() >= records, timeout_s=30, what=lambda: f"{restored()}")


def until_rebalanced(running: RunningApp, count: int) -> None:
    wait_until(lambda: running.metrics()["rebalances"] >= count, timeout_s=30, what="the rebalance")


def test_a_restore_that_a_rebalance_interrupts_goes_on_where_it_stopped_and_reads_nothing_twice(
    topics: Topics, tmp_path: Path
) -> None:
    changelog = f"{topics.application}-counts-changelog"
    with started(topics, tmp_path / "lost") as running:
        for _ in range(3):
            topics.load(1_000)
            topics.wait_for_counts(topics.loaded)
        running.wait_for("RUNNING")
    committed = sum(1 for _ in topics.committed(changelog))
    stray = left_open(topics, changelog)
    with started(topics, tmp_path / "here") as here:
        # All of it is read, and none of the tasks may run: what is open may yet be committed.
        until_restored(here, committed)
        with started(topics, tmp_path / "there") as there:
            until_rebalanced(here, 2)
            until_rebalanced(there, 1)
            assert here.state == there.state == "REBALANCING"
            stray.abort_transaction(30)
            here.wait_for("RUNNING")
            there.wait_for("RUNNING")
            assert 0 < there.metrics()["restored_records"] < committed
        until_rebalanced(here, 3)
        here.wait_for("RUNNING")
        # What went there and came back was on this disk already.
        assert here.metrics()["restored_records"] == committed
        topics.load(1_000)
        assert topics.wait_for_counts(topics.loaded) == topics.truth
    assert stored_counts(tmp_path / "here", topics.application) == topics.truth


def test_aborted_records_and_markers_at_the_end_of_a_changelog_hang_nothing(
    topics: Topics, tmp_path: Path
) -> None:
    changelog = f"{topics.application}-counts-changelog"
    with started(topics, tmp_path) as running:
        topics.load(500)
        topics.wait_for_counts(500)
    for _ in range(2):
        left_open(topics, changelog).abort_transaction(30)
    with started(topics, tmp_path) as running:
        running.wait_for("RUNNING", timeout=15)
        assert running.metrics()["restored_records"] == 0
    assert stored_counts(tmp_path, topics.application) == topics.truth


def test_a_worker_killed_in_the_middle_of_a_restore_goes_on_from_what_it_has(
    topics: Topics, new_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    with started(topics, tmp_path / "lost"):
        topics.load(1_000)
        topics.wait_for_counts(1_000)
    written = sum(1 for _ in topics.committed(f"{topics.application}-counts-changelog"))
    worker = new_worker()
    # A batch is of one partition here: the first is on disk when the second begins.
    worker.start(kill_at=Step.RESTORING.name, kill_commit=2)
    wait_until(lambda: worker.ended is not None, timeout_s=30, what="the kill")
    assert worker.ended == -9, worker.log_tail()
    worker.start()
    topics.load(1_000)
    assert topics.wait_for_counts(2_000) == topics.truth
    assert 0 < worker.finish()["restored_records"] < written
    assert stored_counts(tmp_path / "state", topics.application) == topics.truth
