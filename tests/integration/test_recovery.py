"""Test fencing, static members and a broker that goes away, with real processes and clients."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from streams import StreamsError
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.processes.running import RunningApp
from streams.runtime.clients import KafkaClientSupplier
from streams.settings.config import load_config
from tests.brokers import Broker
from tests.integration.cluster import PARTITIONS, Topics, Worker, stored_counts
from tests.integration.worker import build
from tests.kafka.markers import kill_between_markers
from tests.processes import HANG_LIMIT_S, UNREACHED_MS, wait_until

pytestmark = pytest.mark.sampled(1, by="broker")


def started(topics: Topics, state: Path) -> RunningApp:
    app = build(
        topics.application,
        topics.source,
        topics.target,
        kind="count",
        bootstrap_servers=topics.servers,
        state_dir=state,
        heartbeat_interval_ms=200,
        session_timeout_ms=UNREACHED_MS,
    )
    running = app.start()
    running.wait_for("RUNNING", HANG_LIMIT_S)
    return running


def slot_id(state: Path, application: str) -> str:
    return (state / application / "process-0" / "id").read_text().strip()


def test_a_second_producer_with_the_slots_id_fences_the_first_which_rejoins(
    topics: Topics, tmp_path: Path
) -> None:
    with started(topics, tmp_path) as running:
        topics.load(500)
        topics.wait_for_counts(500)
        name = f"{topics.application}-{slot_id(tmp_path, topics.application)}-0"
        second = Producer({"bootstrap.servers": topics.servers, "transactional.id": name})
        second.init_transactions(HANG_LIMIT_S)
        rebalances = running.metrics()["rebalances"]
        topics.load(500)
        assert topics.wait_for_counts(1_000) == topics.truth
        assert running.metrics()["recoveries"] >= 1
        assert running.metrics()["rebalances"] > rebalances
        # Taking the id back has fenced the second in its turn: it can't commit any more.
        second.begin_transaction()
        second.produce(topics.target, b"stray", b"stray", partition=0)
        with pytest.raises(KafkaException, match=r"[Ff]enced|newer producer"):
            second.commit_transaction(HANG_LIMIT_S)
    assert topics.counts() == topics.truth


def test_a_worker_that_comes_back_gets_its_tasks_without_a_rebalance(
    topics: Topics, new_worker: Callable[..., Worker], tmp_path: Path
) -> None:
    with started(topics, tmp_path / "state") as running:
        other = new_worker(session_timeout_ms=UNREACHED_MS)
        other.start()
        topics.load(2_000)
        topics.wait_for_counts(2_000)
        wait_until(
            lambda: running.metrics()["rebalances"] >= 3 and running.state == "RUNNING",
            what="the second worker to join, and the first to revoke a task for it",
        )
        rebalances = running.metrics()["rebalances"]
        other.kill()
        other.start()
        topics.load(2_000)
        topics.wait_for_counts(4_000)
        assert running.metrics()["rebalances"] == rebalances
        assert other.finish()["records"] > 0
        topics.load(1_000)
        assert topics.wait_for_counts(5_000) == topics.truth


def test_a_worker_stopped_beyond_its_session_writes_nothing_more_and_comes_back(
    topics: Topics, new_worker: Callable[..., Worker]
) -> None:
    worker = new_worker(session_timeout_ms=6_000)
    worker.start()
    topics.load(1_000)
    topics.wait_for_counts(1_000)
    os.kill(worker.pid, signal.SIGSTOP)
    other = new_worker(state="another-machine")
    other.start()
    topics.load(1_000)
    topics.wait_for_counts(2_000)
    os.kill(worker.pid, signal.SIGCONT)
    other.finish()
    topics.load(1_000)
    assert topics.wait_for_counts(3_000) == topics.truth
    assert worker.finish()["records"] >= 2_000, "those before it was stopped, and the last ones"
    assert topics.counts() == topics.truth


def test_a_changelog_that_is_gone_is_reported_and_its_store_is_not_emptied(
    topics: Topics, tmp_path: Path
) -> None:
    with started(topics, tmp_path):
        topics.load(500)
        topics.wait_for_counts(500)
    changelog = f"{topics.application}-counts-changelog"
    admin = AdminClient({"bootstrap.servers": topics.servers})
    admin.delete_topics([changelog])[changelog].result(HANG_LIMIT_S)
    made_again = f"hangelog {changelog}.*was deleted, and made again empty"
    with pytest.raises(StreamsError, match=made_again):
        started(topics, tmp_path)
    assert stored_counts(tmp_path, topics.application) == topics.truth


def test_closing_twice_is_closing_once(topics: Topics, tmp_path: Path) -> None:
    with started(topics, tmp_path) as running:
        running.close()
    assert running.state == "NOT_RUNNING"


def test_a_broker_killed_and_restarted_is_waited_for_and_nothing_is_lost_or_doubled(
    topics: Topics, broker: Broker, tmp_path: Path
) -> None:
    with started(topics, tmp_path) as running:
        topics.load(5_000)
        kill_between_markers(broker)
        broker.restart()
        topics.load(5_000)
        assert topics.wait_for_counts(10_000) == topics.truth
        assert running.state != "ERROR"
    assert topics.counts() == topics.truth


def test_offsets_are_found_again_when_the_broker_leads_with_a_new_epoch(
    topics: Topics, broker: Broker
) -> None:
    topics.load(30)
    config = load_config(bootstrap_servers=topics.servers)
    admin = KafkaClientSupplier(topics.application, config, topics.servers).create_admin()
    partitions = [Partition(topics.source, number) for number in range(PARTITIONS)]
    before = admin.fetch_latest_offsets(partitions)
    broker.kill()
    broker.restart()

    def found() -> bool:
        try:
            return admin.fetch_latest_offsets(partitions) == before
        except OutcomeUnknown:
            return False

    wait_until(found, what="the offsets")
