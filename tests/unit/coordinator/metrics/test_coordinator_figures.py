"""Test the coordinators' metrics, which are plain counters that are read on demand."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer

from coordinator.embedded import EmbeddedBroker
from coordinator.groups.consumer.config import ConsumerGroupSettings
from coordinator.histogram import WINDOW_MS
from coordinator.metrics.coordinator_figures import CoordinatorCollector
from coordinator.offsets.config import OffsetConfig
from coordinator.shard.slices import run_to_completion
from coordinator.transactions.config import TransactionConfig
from coordinator.transactions.service import COMPLETE_RETRY_MS
from coordinator.transactions.state import V2
from tests.unit.coordinator.groups.classic.members import SESSION_MS, FakeMember, stable_group
from tests.unit.coordinator.groups.consumer.members import Consumer
from tests.unit.coordinator.world import TIMEOUT_MS, World


def figures(world: World) -> dict[tuple[str, ...], float]:
    """Return the metric samples other than 0 by name and labels."""
    coordinators: Any = SimpleNamespace(groups=world.groups, transactions=world.transactions)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in CoordinatorCollector(cast(Any, coordinators), world.clock).collect()
        for sample in metric.samples
        if sample.value
    }


def test_transactions_are_counted_by_state_and_by_how_they_ended() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    world.end(owner)
    world.add(owner)
    world.end(owner, committed=False)
    world.add(owner)
    owner = world.init()  # without its request
    world.add(owner)
    world.clock.advance(TIMEOUT_MS)
    world.add(world.init("other"), id_="other")
    found = figures(world)
    [shard] = {key[1] for key in found if key[0] == "millrace_transactions" and key[2] == "Ongoing"}
    assert found["millrace_transactions", shard, "Ongoing"] == 1
    assert found["millrace_transactions_ended_total", "commit", "client"] == 1
    for cause in ("client", "init", "timeout"):
        assert found["millrace_transactions_ended_total", "abort", cause] == 1
    assert found["millrace_markers_total", "written"] == 4
    assert ("millrace_markers_queued",) not in found


def test_markers_that_wait_and_their_retries_are_counted() -> None:
    world = World()
    owner = world.init()
    world.add(owner, version=V2)
    world.words["words", 0].fail_after = 0
    world.end(owner, version=V2)
    world.clock.advance(100 + 200)
    found = figures(world)
    assert found[("millrace_markers_queued",)] == 1
    assert found[("millrace_markers_retrying",)] == 1
    assert found["millrace_markers_total", "retried"] == 3
    world.words["words", 0].fail_after = None
    world.clock.advance(400)
    found = figures(world)
    assert ("millrace_markers_queued",) not in found
    assert ("millrace_markers_retrying",) not in found
    assert found["millrace_transaction_end_seconds_sum", "commit"] == 0.7


def test_the_end_of_a_transaction_that_the_log_refuses_is_counted_until_it_is_logged() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    [log] = [log for log in world.transaction_logs if log.end_offset]
    log.fail_after = 1
    world.end(owner, committed=False)
    assert figures(world)[("millrace_transaction_appends_retrying",)] == 1
    log.fail_after = None
    world.clock.advance(COMPLETE_RETRY_MS)
    found = figures(world)
    assert ("millrace_transaction_appends_retrying",) not in found
    assert found["millrace_transaction_end_seconds_count", "abort"] == 1
    assert found["millrace_transaction_end_seconds_sum", "abort"] == COMPLETE_RETRY_MS / 1_000


def test_the_oldest_open_transaction_is_measured_and_those_past_their_time_out() -> None:
    world = World()
    world.add(world.init())
    world.clock.advance(5_000)
    world.add(world.init("other"), id_="other")
    world.clock.advance(2_000)
    found = figures(world)
    assert found[("millrace_transaction_oldest_open_seconds",)] == 7
    assert ("millrace_transactions_overdue",) not in found
    world.clock.spend(TIMEOUT_MS)  # the broker is too busy to abort them
    assert figures(world)[("millrace_transactions_overdue",)] == 2
    world.clock.advance(1)  # after the stall it reads first what waits in its sockets
    found = figures(world)
    assert found["millrace_transactions_ended_total", "abort", "timeout"] == 2
    assert ("millrace_transaction_oldest_open_seconds",) not in found


def test_groups_are_counted_by_state_and_their_rebalances_by_cause() -> None:
    world = World()
    a, b, c = (FakeMember(world, name) for name in "abc")
    stable_group(world, a)
    b.join()
    world.clock.advance(40)
    a.join()
    world.clock.advance(2)
    b.sync()
    a.sync()
    b.leave()
    world.clock.advance(SESSION_MS)  # the other one is silent, too
    c.join()
    shard = world.groups.shards[world.groups.partition_of("counts")].log.name
    found = {
        key[0]: value
        for key, value in figures(world).items()
        if key[1:3] == (shard, "classic") and len(key) == 3
    }
    assert found.pop("millrace_group_heartbeats_total") > 0
    assert found == {
        "millrace_group_sessions_expired_total": 1,
        "millrace_group_rebalance_seconds_count": 2,
        "millrace_group_rebalance_seconds_sum": 0.044,
        "millrace_group_rebalance_seconds_max": 0.042,
    }
    causes = {
        key[3]: value
        for key, value in figures(world).items()
        if key[0] == "millrace_group_rebalances_total"
    }
    assert causes == {"join": 3, "leave": 1}
    assert figures(world)["millrace_groups", shard, "classic", "PreparingRebalance"] == 1


def test_groups_and_members_are_counted_as_they_come_and_go() -> None:
    world = World()
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a, b)
    b.leave()
    world.clock.advance(SESSION_MS)  # the other one is silent
    world.delete_group("counts")
    first, second = Consumer(world, "first"), Consumer(world, "second")
    first.join("words")
    second.join("words")
    found = figures(world)
    assert found["millrace_groups_created_total", "classic"] == 1
    assert found["millrace_group_members_joined_total", "classic"] == 2
    assert found["millrace_group_members_left_total", "classic"] == 2
    assert found["millrace_groups_deleted_total", "classic"] == 1
    assert found["millrace_groups_created_total", "consumer"] == 1
    assert found["millrace_group_members_joined_total", "consumer"] == 2
    assert ("millrace_group_members_left_total", "consumer") not in found


def test_rebalances_are_counted_by_how_they_ended() -> None:
    world = World()
    a, b, c = (FakeMember(world, name) for name in "abc")
    stable_group(world, a)
    b.join()
    a.join()  # the generation of both, which never gets an assignment
    world.clock.advance(1)
    c.join()
    a.join()
    b.join()
    assert a.joined is not None
    for member in (a, b, c):
        member.leave()
    found = figures(world)
    ended = "millrace_group_rebalances_ended_total"
    assert found[ended, "classic", "complete"] == 1
    assert found[ended, "classic", "superseded"] >= 1
    assert found[ended, "classic", "abandoned"] == 1
    assert found["millrace_group_rebalance_duration_seconds_count", "classic"] == 1


def test_the_longest_rebalance_is_forgotten_after_a_while() -> None:
    world = World()
    a, b = FakeMember(world, "a"), FakeMember(world, "b")
    stable_group(world, a)
    b.join()
    world.clock.advance(40)
    a.join()
    b.sync()
    a.sync({a: b"", b: b""})
    shard = world.groups.shards[world.groups.partition_of("counts")].log.name
    longest = ("millrace_group_rebalance_seconds_max", shard, "classic")
    assert figures(world)[longest] == 0.04
    world.clock.spend(2 * WINDOW_MS)
    assert longest not in figures(world)


def test_the_assignors_of_the_broker_are_measured_with_the_partitions_that_they_moved() -> None:
    world = World()
    Consumer(world, "first").join("words")
    found = figures(world)
    assert found["millrace_assignor_seconds_count", "uniform"] == 1
    assert ("millrace_assignor_partitions_moved_total", "uniform") not in found
    world.clock.advance(ConsumerGroupSettings().assignment_interval_ms)
    Consumer(world, "second").join("words")
    found = figures(world)
    assert found["millrace_assignor_seconds_count", "uniform"] == 2
    assert found["millrace_assignor_partitions_moved_total", "uniform"] == 1


def test_shards_are_counted_by_state_and_appends_by_coordinator() -> None:
    world = World()
    world.commit(5)
    world.groups.shards[0].log.mark_resigned()
    found = figures(world)
    assert found["millrace_coordinator_shards", "group", "active"] == 1
    assert found["millrace_coordinator_shards", "group", "resigned"] == 1
    assert found["millrace_coordinator_shards", "transaction", "active"] == 2
    assert found["millrace_coordinator_append_seconds_count", "group"] == 1
    assert found["millrace_coordinator_event_seconds_count", "group"] == 1
    assert ("millrace_coordinator_event_seconds_count", "transaction") not in found


def test_offset_commits_are_counted_by_kind() -> None:
    world = World()
    owner = world.init()
    world.add_group(owner)
    world.commit(5, group_id="simple")
    a = FakeMember(world, "a")
    stable_group(world, a)
    world.commit(5, committer=a.committer)
    world.commit(6, committer=a.committer)
    world.stage(owner, 6, committer=a.committer)
    found = figures(world)
    name = "millrace_offset_commits_by_kind_total"
    assert (found[name, "simple"], found[name, "member"], found[name, "transaction"]) == (1, 2, 1)


def test_transactional_ids_that_expire_are_counted() -> None:
    world = World()
    world.init()
    world.init("other")
    world.clock.advance(TransactionConfig().transactional_id_expiration_ms + 3_600_000)
    assert figures(world)[("millrace_transactional_ids_expired_total",)] == 2


def test_offsets_are_counted_as_they_come_and_go() -> None:
    world = World(
        offset_config=OffsetConfig(retention_ms=60_000, retention_check_interval_ms=60_000)
    )
    owner = world.init()
    world.add_group(owner)
    for partition in range(3):
        world.commit(5, partition=partition)
    world.stage(owner, 6)
    run_to_completion(
        world.groups.offsets.delete_offsets_in_slices("counts", [("words", 1), ("words", 9)])
    )
    shard = world.groups.shards[world.groups.partition_of("counts")].log.name
    expected = {"offsets": 2, "offset_commits_total": 4, "offset_deletions_total": 1}

    def found() -> dict[str, float]:
        all_found = figures(world)
        return {
            name: all_found[f"millrace_{name}", shard]
            for name in (*expected, "offset_expirations_total")
            if (f"millrace_{name}", shard) in all_found
        }

    assert found() == expected
    world.end(owner)
    world.clock.advance(60_000)
    assert found() == {
        "offset_commits_total": 4,
        "offset_deletions_total": 1,
        "offset_expirations_total": 2,
    }


def test_a_shard_counts_what_it_replayed_and_what_it_appended() -> None:
    world = World()
    owner = world.init()
    world.add(owner)
    world.restart()
    world.end(owner)
    [shard] = [s.log for s in world.transactions.shards if s.state.transactions]
    found = figures(world)
    assert found["millrace_shard_active", shard.name] == 1
    assert found["millrace_shard_events_processed_total", shard.name] == 2 + 2
    assert found["millrace_shard_append_seconds_count", shard.name] == 2
    shard.mark_resigned()
    shard.restart_loading_as_leader()
    found = figures(world)
    assert ("millrace_shard_active", shard.name) not in found
    assert found["millrace_shard_events_queued", shard.name] == 4


def test_a_broker_answers_prometheus_on_a_port_of_its_own() -> None:
    with EmbeddedBroker(topics={"words": 1}, settings={"metrics.port": 0}) as broker:
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "app"}
        )
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("words", b"a")
        producer.commit_transaction()
        producer.list_topics()  # answered once the markers are written
        with urlopen(broker.metrics_url, timeout=60) as answer:
            text = answer.read().decode()
    assert 'millrace_transactions_ended_total{cause="client",outcome="commit"} 1.0' in text
    assert 'state="CompleteCommit"} 1.0' in text


def test_without_being_asked_for_there_are_none() -> None:
    with EmbeddedBroker() as broker, pytest.raises(RuntimeError, match="no metrics"):
        _ = broker.metrics_url
    code = "import sys, coordinator.__main__; sys.exit('prometheus_client' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
