"""Test that a streams member stays in its group while a transaction coordinator is silent.

Its heartbeats go to the group's coordinator, which answers. They must not wait for the commit any
longer than the group would wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator import EmbeddedBroker
from coordinator.faults import RequestFault
from streams import App, serdes
from tests.brokers import SETTINGS
from tests.integration.cluster import PARTITIONS, Topics
from tests.integration.test_one_coordinator import wait_for_rounds, write_round
from tests.processes import HANG_LIMIT_S, wait_until

SESSION_MS = 3_000


def test_a_streams_member_is_not_fenced_while_its_transaction_coordinator_is_silent(
    unique: Callable[[str], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Keep a commit waiting for more than a session; the request time-out would be ten of them."""
    session = {
        "group.streams.session.timeout.ms": str(SESSION_MS),
        "group.streams.heartbeat.interval.ms": "500",
    }
    with EmbeddedBroker(settings={**SETTINGS, **session}) as broker:
        topics = Topics(broker.bootstrap_servers, unique("silent"))
        app = App(
            topics.application,
            bootstrap_servers=topics.servers,
            state_dir=tmp_path,
            group_protocol="streams",
            commit_interval_ms=20,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
            request_timeout_ms=10 * SESSION_MS,
        )
        app.stream(topics.source, key=serdes.string, value=serdes.string).to(topics.target)
        with app.start() as running:
            write_round(topics, "round 1")
            wait_for_rounds(topics, 1, partitions=PARTITIONS)
            silence = broker.faults.add(RequestFault("lose-request", api="AddOffsetsToTxn"))
            write_round(topics, "round 2")
            wait_until(
                lambda: running.metrics()["recoveries"] >= 2,
                what=lambda: f"two commits that are given up: {caplog.text}",
            )
            assert silence.struck >= 2
            silence.remove()
            wait_for_rounds(topics, 2, partitions=PARTITIONS)
            running.wait_for("RUNNING", HANG_LIMIT_S)
    assert "has lost its membership" not in caplog.text
    assert "no answer for" in caplog.text
