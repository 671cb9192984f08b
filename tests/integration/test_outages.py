"""Test that a worker goes on after an outage that is longer than all of its time-outs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.integration.cluster import Topics
from tests.integration.worker import build
from tests.kafka.markers import kill_between_markers
from tests.processes import HANG_LIMIT_S, wait_until

TIMEOUT_MS = 4_000
OUTAGE_S = 10
"""Longer than all time-outs, which a coordinator that loads its log after it must not reach."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "exactly_once", "at_least_once"])
def test_a_worker_with_records_in_flight_goes_on_after_an_outage(
    topics: Topics,
    broker: Broker,
    tmp_path: Path,
    guarantee: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = build(
        topics.application,
        topics.source,
        topics.target,
        kind="count",
        bootstrap_servers=topics.servers,
        state_dir=tmp_path,
        processing_guarantee=guarantee,
        commit_interval_ms=50,
        heartbeat_interval_ms=200,
        session_timeout_ms=6_000,
        request_timeout_ms=TIMEOUT_MS,
        task_timeout_ms=TIMEOUT_MS,
        transaction_timeout_ms=2 * TIMEOUT_MS,
    )
    with app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(500)
        topics.wait_for_counts(500)
        topics.load(5_000)
        kill_between_markers(broker)

        def measure_outage_s() -> int:
            why = "".join(running.health().why)
            found = re.match(r"no broker answers at .*?, for (\d+) s", why)
            return int(found[1]) if found else -1

        wait_until(lambda: measure_outage_s() >= 0, what="the outage in the report of health")
        wait_until(lambda: measure_outage_s() >= OUTAGE_S, what="the outage to last")
        health = running.health()
        assert (health.healthy, health.live) == (False, True)
        assert running.state != "ERROR"
        broker.restart()
        topics.load(500)
        counts = topics.wait_for_counts(6_000)
        if guarantee != "at_least_once":
            assert counts == topics.truth
        wait_until(lambda: running.health().healthy, what="health")
    told = [each for each in caplog.records if each.name.startswith("streams.")]
    assert [each.getMessage() for each in told if each.levelname in ("ERROR", "CRITICAL")] == []
