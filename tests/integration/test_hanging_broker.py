"""Test that workers go on after their only broker has hung, without anybody starting them again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers import Broker, EmbeddedProcess
from tests.conformance.wire import Api, Client
from tests.integration.cluster import Topics
from tests.integration.running import start_counting
from tests.kafka.server import RealKafka
from tests.processes import HANG_LIMIT_S, wait_until

HANG_S = 6.0
"""Long enough that Kafka's controller fences its only broker: it then lists no brokers at all."""
FENCING = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "3000"}
"""The broker is fenced until its next heartbeat, and each client asks it for metadata before."""
LISTED_S = 4.0
"""Longer than the interval of heartbeats: no fencing is to come."""


@pytest.fixture
def own_broker(broker: Broker) -> Iterator[RealKafka | EmbeddedProcess]:
    """Start a broker that the test may stop, of the kind that was asked for."""
    own = RealKafka(FENCING) if broker.kind == "kafka" else EmbeddedProcess()
    own.start()
    yield own
    os.kill(own.pid, signal.SIGCONT)
    own.end(signal.SIGKILL)


STUCK = {"metadata.recovery.strategy": "none"}
"""With it a client of librdkafka that was told of no brokers reads nothing more, for good. By
default this happens now and then, after a broker has hung for more than five minutes."""


def wait_until_listed(servers: str) -> None:
    """Wait until the broker has been listed for longer than it can take to be fenced and let in.

    A plain client of the test that is told of no brokers reads nothing more, as that of a worker
    would (docs/decisions/0086), and has nobody who replaces it.
    """
    listed_since = time.monotonic()

    def stays_listed() -> bool:
        nonlocal listed_since
        if not client.send(Api.METADATA, 12, topics=()).brokers:
            listed_since = time.monotonic()
        return time.monotonic() - listed_since > LISTED_S

    with Client(servers) as client:
        wait_until(stays_listed, what="the broker is fenced again and again")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("settings", [{}, STUCK], ids=["default", "stuck"])
def test_workers_go_on_after_their_only_broker_has_hung(
    own_broker: RealKafka | EmbeddedProcess, tmp_path: Path, settings: dict[str, str]
) -> None:
    topics = Topics(own_broker.bootstrap_servers, "hanging")
    # Its clients ask for metadata while the broker is fenced, as they do after a longer time.
    often = {"topic.metadata.refresh.interval.ms": 500}
    with start_counting(topics, tmp_path, consumer=often | settings) as running:
        topics.load(500)
        topics.wait_for_counts(500)
        os.kill(own_broker.pid, signal.SIGSTOP)
        time.sleep(HANG_S)  # nothing can be asked meanwhile
        os.kill(own_broker.pid, signal.SIGCONT)
        topics.load(500)
        if own_broker.kind == "kafka":
            wait_until_listed(own_broker.bootstrap_servers)
        assert topics.wait_for_counts(1_000) == topics.truth
        running.wait_for("RUNNING", HANG_LIMIT_S)
