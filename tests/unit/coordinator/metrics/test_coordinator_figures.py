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
from coordinator.metrics.coordinator_figures import CoordinatorCollector
from coordinator.offsets.config import OffsetConfig
from coordinator.shard.slices import run_to_completion
from coordinator.transactions.state import V2
from tests.unit.coordinator.groups.classic.members import SESSION_MS, FakeMember, stable_group
from tests.unit.coordinator.world import TIMEOUT_MS, World


def figures(world: World) -> dict[tuple[str, ...], float]:
    """Return the metric samples other than 0 by name and labels."""
    coordinators: Any = SimpleNamespace(groups=world.groups, transactions=world.transactions)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in CoordinatorCollector(cast(Any, coordinators)).collect()
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
    assert found["millrace_markers_total", "retried"] == 3


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
    shard.take_leadership()
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
        with urlopen(broker.metrics_url) as answer:
            text = answer.read().decode()
    assert 'millrace_transactions_ended_total{cause="client",outcome="commit"} 1.0' in text
    assert 'state="CompleteCommit"} 1.0' in text


def test_without_being_asked_for_there_are_none() -> None:
    with EmbeddedBroker() as broker, pytest.raises(RuntimeError, match="no metrics"):
        _ = broker.metrics_url
    code = "import sys, coordinator.__main__; sys.exit('prometheus_client' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
