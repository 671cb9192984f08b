"""Test that a worker on another machine takes its share: another network, another directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.brokers import IN_CI, SETTINGS, EmbeddedProcess
from tests.integration.cluster import Topics, Worker, stored_counts
from tests.kafka.server import RealKafka
from tests.processes import wait_until

pytestmark = IN_CI

NAMESPACE = f"millrace-{os.getpid()}"
OUTSIDE, INSIDE = f"mro{os.getpid()}", f"mri{os.getpid()}"
# Addresses for tests of networks (RFC 2544); a pair for each process.
NETWORK = f"198.18.{os.getpid() // 64 % 256}.{os.getpid() % 64 * 4}"
BROKER_ADDRESS, WORKER_ADDRESS = (
    f"{NETWORK.rpartition('.')[0]}.{int(NETWORK.rpartition('.')[2]) + each}" for each in (1, 2)
)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def namespace() -> Iterator[str]:
    """Provide a network namespace that reaches this one over a pair of interfaces."""
    if shutil.which("ip") is None or os.geteuid():
        pytest.skip("network namespaces need root and iproute2")
    try:
        ip("netns", "add", NAMESPACE)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces can't be made here: {error.stderr.decode()}")
    try:
        ip("link", "add", OUTSIDE, "type", "veth", "peer", "name", INSIDE)
        ip("link", "set", INSIDE, "netns", NAMESPACE)
        ip("addr", "add", f"{BROKER_ADDRESS}/30", "dev", OUTSIDE)
        ip("link", "set", OUTSIDE, "up")
        ip("-n", NAMESPACE, "addr", "add", f"{WORKER_ADDRESS}/30", "dev", INSIDE)
        ip("-n", NAMESPACE, "link", "set", INSIDE, "up")
        ip("-n", NAMESPACE, "link", "set", "lo", "up")
        yield NAMESPACE
    finally:
        ip("netns", "del", NAMESPACE)  # the pair of interfaces goes with it


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_a_worker_in_another_network_takes_its_share(
    namespace: str, kind: str, tmp_path: Path
) -> None:
    broker = (
        EmbeddedProcess(SETTINGS, host=BROKER_ADDRESS)
        if kind == "embedded"
        else RealKafka(SETTINGS, host=BROKER_ADDRESS)
    )
    try:
        broker.start()
        topics = Topics(broker.bootstrap_servers, f"scaling-{uuid4().hex[:8]}")
        here, there = (
            Worker(
                topics,
                tmp_path / name,
                kind="count",
                guarantee="exactly_once_v2",
                session_timeout_ms=10_000,
            )
            for name in ("here", "there")
        )
        there.prefix = ("ip", "netns", "exec", namespace)
        try:
            here.start()
            topics.load(1_000)
            topics.wait_for_counts(1_000)
            there.start()
            wait_until(
                lambda: bool(list((tmp_path / "there").glob("*/0_*/counts"))),
                what=there.log_tail,
            )
            topics.load(2_000)
            assert topics.wait_for_counts(3_000) == topics.truth
            assert there.finish()["records"] > 0
            topics.load(1_000)
            assert topics.wait_for_counts(4_000) == topics.truth
            here.finish()
            assert stored_counts(tmp_path / "here", topics.application) == topics.truth
        finally:
            for worker in (here, there):
                worker.kill()
                worker.close()
    finally:
        broker.close()
