"""Test when a worker that can't reach its embedded broker restarts it, and when not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.common.host import SystemHost
from streams.connection.current import CurrentSecurity
from streams.connection.security import PLAINTEXT
from streams.errors import AuthenticationError, ConfigError
from streams.membership.connection import ConnectionLost
from streams.processes import broker_connector
from streams.processes.broker_connector import BrokerConnector
from streams.processes.cluster import Cluster
from streams.settings.config import load_config
from tests.processes import HOST, UNREACHED_MS, free_ports
from tests.unit.streams.membership.fake_sasl_broker import API_VERSIONS, FakeSaslBroker
from tests.unit.streams.runtime.fakes import Clock

SHORT_S = 0.2
WAKE_INTERVAL_S = 0.1
COORDINATOR = ("coordinator", 9093)


class Host(SystemHost):
    def __init__(self) -> None:
        self.clock = Clock()

    def monotonic_s(self) -> float:
        return self.clock()


class Gone:
    """Holds the address of a broker that is gone, and a connector that would restart it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, servers: str = "") -> None:
        self.host = Host()
        self.stop = self.host.create_event()
        self.started: list[str] = []
        self.failure: Exception | None = None
        monkeypatch.setattr(broker_connector, "restart_embedded_broker", self._start)
        [port] = free_ports(1)
        self.address = f"{HOST}:{port}"
        config = load_config(bootstrap_servers=servers or "embedded", state_dir=tmp_path)
        cluster = Cluster(self.address, CurrentSecurity(PLAINTEXT))
        self.dial = BrokerConnector(config, cluster, self.host, self.stop)

    def _start(self, state_dir: Path, address: str, is_given_up: Callable[[], bool]) -> int:
        self.started.append(address)
        if self.failure is not None:
            raise self.failure
        return 4711

    def missed(self, *, address: tuple[str, int] | None = None) -> int:
        """Miss the broker once more, and return how often it has been restarted in all."""
        with pytest.raises(ConnectionLost):
            self.dial(address)
        return len(self.started)


def connector_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == broker_connector.__name__]


def test_it_is_started_again_where_it_was_and_not_more_often_than_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = Gone(monkeypatch, tmp_path)
    assert [gone.missed() for _ in range(3)] == [1, 1, 1]
    assert connector_messages(caplog) == [
        f"the embedded broker at {gone.address} was gone: started again as process 4711"
    ]
    gone.host.clock.advance_monotonic_clock(10)
    assert gone.missed() == 2
    assert gone.started == [gone.address] * 2


@pytest.mark.parametrize("failure", [ConfigError("no space"), FileNotFoundError("no directory")])
def test_one_that_does_not_start_is_said_and_tried_again_later(
    failure: Exception,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gone = Gone(monkeypatch, tmp_path)
    gone.failure = failure
    assert [gone.missed(), gone.missed()] == [1, 1]
    assert connector_messages(caplog) == [
        f"the embedded broker is gone and can't be started again: {failure}"
    ]


def test_a_worker_that_stops_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = Gone(monkeypatch, tmp_path)
    gone.stop.set()
    assert gone.missed() == 0


def test_nothing_is_started_for_a_cluster_nor_for_one_address_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert Gone(monkeypatch, tmp_path, servers="kafka-1:9092").missed() == 0
    assert Gone(monkeypatch, tmp_path).missed(address=(HOST, free_ports(1)[0])) == 0


def test_one_that_hangs_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(broker_connector, "BROKER_WAIT_S", SHORT_S)
    gone = Gone(monkeypatch, tmp_path)
    with socket.create_server((HOST, int(gone.address.rpartition(":")[2]))):
        assert gone.missed() == 0


def test_a_stop_ends_the_wait_for_a_broker_and_one_that_came_before_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(broker_connector, "BROKER_WAIT_S", UNREACHED_MS / 1000)
    gone = Gone(monkeypatch, tmp_path, servers="kafka-1:9092")
    peers: list[socket.socket] = []
    with socket.create_server((HOST, 0)) as silent:

        def stop_when_connected() -> None:
            peers.append(silent.accept()[0])
            gone.stop.set()

        stopper = threading.Thread(target=stop_when_connected)
        stopper.start()
        with pytest.raises(ConnectionLost, match="given up"):
            gone.dial(silent.getsockname()[:2])
        stopper.join()
        peers[0].close()
    fake = FakeSaslBroker(delay_s=2 * WAKE_INTERVAL_S)
    try:
        gone.dial(fake.address).close()
    finally:
        fake.close()


def test_servers_are_asked_in_turn_and_silent_ones_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = FakeSaslBroker(), FakeSaslBroker()
    try:
        servers = f"{first.servers},{second.servers}"
        config = load_config(bootstrap_servers=servers, state_dir=tmp_path)
        host = Host()
        cluster = Cluster(servers, CurrentSecurity(PLAINTEXT))
        dial = BrokerConnector(config, cluster, host, host.create_event())
        for asked in ((1, 0), (1, 1), (2, 1)):
            dial(None).close()
            assert (first.connection_count, second.connection_count) == asked
        first.refused.add(API_VERSIONS)
        for asked in ((2, 2), (3, 3), (3, 4)):
            dial(None).close()
            assert (first.connection_count, second.connection_count) == asked
    finally:
        first.close()
        second.close()


def test_a_refusal_is_a_lost_connection_until_the_worker_is_to_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise AuthenticationError("refuses the credentials of user 'a'")

    monkeypatch.setattr(broker_connector, "BrokerConnection", refuse)
    host, security = SystemHost(), CurrentSecurity(PLAINTEXT)
    config = load_config(bootstrap_servers="broker:9092", state_dir=tmp_path)
    cluster = Cluster("broker:9092", security)
    open_connection = BrokerConnector(config, cluster, host, host.create_event())
    for address in (None, ("broker", 9092)):
        security.is_in_doubt = False
        with pytest.raises(ConnectionLost, match="user 'a'"):
            open_connection(address)
        assert security.is_in_doubt, "nobody looks for the cause"
    security.note_refusal("refused for long")
    for address in (None, ("broker", 9092)):
        with pytest.raises(AuthenticationError, match="refused for long"):
            open_connection(address)
