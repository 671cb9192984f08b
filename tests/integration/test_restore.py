"""Test restores with real clients: moved in the middle, behind open transactions, to the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from streams import StreamsError
from streams.processes.running import RunningApp
from streams.runtime.threads.commit import CommitStep
from tests.brokers import IN_CI
from tests.integration.cluster import KEYS, PARTITIONS, Topics, Worker, stored_counts
from tests.integration.running import start_counting
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


def left_open(topics: Topics, changelog: str) -> Producer:
    """Open a stray producer's transaction with a record at the end of each changelog partition."""
    producer = Producer(
        {
            "bootstrap.servers": topics.servers,
            "transactional.id": f"{topics.application}-stray",
            "transaction.timeout.ms": 60_000,
        }
    )
    producer.init_transactions(HANG_LIMIT_S)
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        for key in range(KEYS):
            producer.produce(changelog, b"wrong", f"key-{key}", partition)
    assert producer.flush(HANG_LIMIT_S) == 0
    return producer


def count_replayed(running: RunningApp) -> int:
    """Count the records replayed by restores, and while a task was waited for as a standby."""
    counters = running.metrics()
    replayed: int = counters["restored_records"] + counters["standby_records"]
    return replayed


def until_replayed(running: RunningApp, records: int) -> None:
    wait_until(
        lambda: count_replayed(running) >= records, what=lambda: f"{count_replayed(running)}"
    )


def until_rebalanced(running: RunningApp, count: int) -> None:
    wait_until(lambda: running.metrics()["rebalances"] >= count, what="the rebalance")


def test_a_restore_that_a_rebalance_interrupts_goes_on_where_it_stopped_and_reads_nothing_twice(
    topics: Topics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    changelog = f"{topics.application}-counts-changelog"
    with start_counting(topics, tmp_path / "lost") as running:
        for _ in range(3):
            topics.load(1_000)
            topics.wait_for_counts(topics.loaded)
        running.wait_for("RUNNING", HANG_LIMIT_S)
    committed = sum(1 for _ in topics.committed(changelog))
    stray = left_open(topics, changelog)
    moved_at_once = {"acceptable_recovery_lag": 10 * committed}
    with start_counting(topics, tmp_path / "here", **moved_at_once) as here:
        # All of it is read, and none of the tasks may run: what is open may yet be committed.
        until_replayed(here, committed)
        wait_until(
            lambda: "waiting for an open transaction to end" in caplog.text,
            what="the restore to wait",
        )
        with start_counting(topics, tmp_path / "there", **moved_at_once) as there:
            wait_until(
                lambda: there.metrics()["tasks"] == 1 and count_replayed(there) > 0,
                what="a task to go there and be replayed",
            )
            assert here.state == there.state == "REBALANCING"
            stray.abort_transaction(HANG_LIMIT_S)
            here.wait_for("RUNNING", HANG_LIMIT_S)
            there.wait_for("RUNNING", HANG_LIMIT_S)
            assert 0 < count_replayed(there) < committed
        until_rebalanced(here, 3)
        here.wait_for("RUNNING", HANG_LIMIT_S)
        # What went there and came back was on this disk already.
        assert count_replayed(here) == committed
        topics.load(1_000)
        assert topics.wait_for_counts(topics.loaded) == topics.truth
    assert stored_counts(tmp_path / "here", topics.application) == topics.truth


def test_aborted_records_and_markers_at_the_end_of_a_changelog_hang_nothing(
    topics: Topics, tmp_path: Path
) -> None:
    changelog = f"{topics.application}-counts-changelog"
    with start_counting(topics, tmp_path) as running:
        topics.load(500)
        topics.wait_for_counts(500)
    for _ in range(2):
        left_open(topics, changelog).abort_transaction(HANG_LIMIT_S)
    with start_counting(topics, tmp_path) as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        assert running.metrics()["restored_records"] == 0
    assert stored_counts(tmp_path, topics.application) == topics.truth


def test_a_worker_killed_in_the_middle_of_a_restore_goes_on_from_what_it_has(
    topics: Topics, new_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    with start_counting(topics, tmp_path / "lost"):
        topics.load(1_000)
        topics.wait_for_counts(1_000)
    written = sum(1 for _ in topics.committed(f"{topics.application}-counts-changelog"))
    worker = new_worker()
    # A batch is of one partition here: the first is on disk when the second begins.
    worker.start(kill_at=CommitStep.RESTORING.name, kill_commit=2)
    wait_until(lambda: worker.ended is not None, what="the kill")
    assert worker.ended == -9, worker.log_tail()
    worker.start()
    topics.load(1_000)
    assert topics.wait_for_counts(2_000) == topics.truth
    assert 0 < worker.finish()["restored_records"] < written
    assert stored_counts(tmp_path / "state", topics.application) == topics.truth


def test_a_store_that_may_have_missed_deletions_is_rebuilt_alone_and_the_log_says_why(
    topics: Topics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changelog = f"{topics.application}-counts-changelog"
    with start_counting(topics, tmp_path / "old"):
        topics.load(500)
        topics.wait_for_counts(500)
    with start_counting(topics, tmp_path / "new"):
        topics.load(500)
        topics.wait_for_counts(1_000)
    with start_counting(topics, tmp_path / "old") as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
    assert "rebuilt" not in caplog.text
    with start_counting(topics, tmp_path / "new"):
        topics.load(500)
        topics.wait_for_counts(1_500)
    settings = ConfigResource(
        ConfigResource.Type.TOPIC,
        changelog,
        incremental_configs=[
            ConfigEntry("delete.retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin = AdminClient({"bootstrap.servers": topics.servers})
    admin.incremental_alter_configs([settings])[settings].result(HANG_LIMIT_S)
    with start_counting(topics, tmp_path / "old") as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        assert running.metrics()["restored_records"] == sum(1 for _ in topics.committed(changelog))
    assert "keeps deletions for 0 s (delete.retention.ms): some may be gone" in caplog.text
    assert stored_counts(tmp_path / "old", topics.application) == topics.truth


def test_an_input_that_was_cut_below_its_offset_stops_the_thread_or_goes_by_the_policy(
    topics: Topics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with start_counting(topics, tmp_path):
        topics.load(300)
        topics.wait_for_counts(300)
    counted = topics.counts()
    topics.load(300)
    admin = AdminClient({"bootstrap.servers": topics.servers})
    cut = [TopicPartition(topics.source, number, OFFSET_END) for number in range(PARTITIONS)]
    for answer in admin.delete_records(cut).values():
        answer.result(HANG_LIMIT_S)
    refused = pytest.raises(StreamsError, match=r"outside .* there.*offset_out_of_range=fail")
    with refused, start_counting(topics, tmp_path) as running:
        running.wait_for("ERROR", HANG_LIMIT_S)
    assert topics.counts() == counted
    with start_counting(topics, tmp_path, offset_out_of_range="earliest") as running:
        last = Producer({"bootstrap.servers": topics.servers})
        last.produce(topics.source, b"after the cut", b"key-0")
        assert last.flush(HANG_LIMIT_S) == 0
        counted["key-0"] += 1
        assert topics.wait_for_counts(301) == counted
        wait_until(
            lambda: running.metrics()["records_out_of_range"] == 300,
            what=lambda: str(running.metrics()),
        )
    assert "(offset_out_of_range=earliest)" in caplog.text
