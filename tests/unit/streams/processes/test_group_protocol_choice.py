"""Test which protocol an application joins its group by, and what is refused."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from threading import Lock
from typing import Any

import pytest

from benchmarks.streams_group import configure_group
from coordinator.embedded import EmbeddedBroker
from streams import App, serdes, topics
from streams.errors import AuthorizationError, ConfigError
from streams.membership.connection import BrokerConnection
from streams.membership.streams import group_session
from streams.processes import group_protocol_choice
from streams.processes.group_protocol_choice import choose_group_protocol
from streams.settings.config import StreamsConfig, load_config
from streams.topology.build import Topology
from tests.conformance.members import Member
from tests.conformance.wire import Client

GROUP = "app"
STREAMS_GROUP_KEYS = (88, 89)
"""StreamsGroupHeartbeat and StreamsGroupDescribe, which Kafka has from 4.2 on."""


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


class Opener:
    """Opens connections to a broker, without the APIs that it is told to leave out."""

    def __init__(self, broker: EmbeddedBroker, without: tuple[int, ...] = ()) -> None:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        self._address = host, int(port)
        self._without = without

    def __call__(self, address: tuple[str, int] | None) -> BrokerConnection:
        opened = BrokerConnection(address or self._address, "test", 10.0, Lock())
        for api_key in self._without:
            opened.api_versions.pop(api_key, None)
        return opened


def choose(config: StreamsConfig, opener: Opener, topology: Topology | None = None) -> str:
    chosen = choose_group_protocol(config, topology or Topology(GROUP, ()), opener)
    return chosen.group_protocol


def load(protocol: str, **settings: Any) -> StreamsConfig:
    return load_config(group_protocol=protocol, **settings)


def test_classic_is_the_default_and_asks_nobody(broker: EmbeddedBroker) -> None:
    assert load_config().group_protocol == "classic"
    assert choose(load_config(), Opener(broker)) == "classic"


def choose_session_ms(protocol: str, own_ms: int, opener: Opener) -> int:
    config = load(protocol, session_timeout_ms=own_ms)
    return choose_group_protocol(config, Topology(GROUP, ()), opener).session_timeout_ms


@pytest.fixture
def impatient_broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings={"group.streams.min.session.timeout.ms": 6_000}) as broker:
        configure_group(
            broker.bootstrap_servers, GROUP, standbys=0, session_ms=6_000, heartbeat_ms=5_000
        )
        yield broker


@pytest.mark.parametrize("own_ms", [5_000, 20_000, 90_000])
def test_the_session_of_a_streams_group_is_taken_from_the_broker(
    broker: EmbeddedBroker, impatient_broker: EmbeddedBroker, own_ms: int
) -> None:
    assert choose_session_ms("streams", own_ms, Opener(broker)) == 45_000
    for protocol in ("streams", "auto"):
        assert choose_session_ms(protocol, own_ms, Opener(impatient_broker)) == 6_000
    assert choose_session_ms("classic", own_ms, Opener(impatient_broker)) == own_ms


@pytest.mark.parametrize(("own_ms", "taken_ms"), [(20_000, 20_000), (90_000, 45_000)])
def test_a_session_that_may_not_be_read_is_assumed_and_said(
    broker: EmbeddedBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    own_ms: int,
    taken_ms: int,
) -> None:
    def refuse(_connection: BrokerConnection, group_id: str) -> int:
        raise AuthorizationError("DescribeConfigs", "group", group_id)

    monkeypatch.setattr(group_session, "fetch_session_ms", refuse)
    assert choose_session_ms("streams", own_ms, Opener(broker)) == taken_ms
    assert "streams.session.timeout.ms of group 'app' can't be read" in caplog.text
    assert "add the ACL DescribeConfigs on group app" in caplog.text
    assert f"It is taken to be {taken_ms} ms" in caplog.text
    is_unused = "session_timeout_ms of this worker is not used" in caplog.text
    assert is_unused == (own_ms != taken_ms)


def test_a_session_that_the_group_has_as_well_needs_no_warning(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(group_session, "fetch_session_ms", lambda *_: 60_000)
    assert choose_session_ms("streams", 60_000, Opener(broker)) == 45_000
    assert "session_timeout_ms of this worker is not used" not in caplog.text
    assert choose_session_ms("streams", 50_000, Opener(broker)) == 45_000
    assert "session_timeout_ms of this worker is not used" in caplog.text


def test_streams_is_refused_where_the_broker_has_no_such_api(broker: EmbeddedBroker) -> None:
    with pytest.raises(ConfigError) as refused:
        choose(load("streams"), Opener(broker, without=STREAMS_GROUP_KEYS))
    text = str(refused.value)
    assert text.startswith(
        "group_protocol='streams' is not possible here: the broker doesn't serve"
    )
    assert "StreamsGroupHeartbeat, which Kafka has from 4.2 on" in text
    assert "Set group_protocol='classic'" in text


def test_streams_is_refused_where_the_feature_is_off() -> None:
    with EmbeddedBroker(settings={"streams.version": 0}) as broker:
        with pytest.raises(ConfigError, match=r"feature streams\.version is not enabled"):
            choose(load("streams"), Opener(broker))
        assert choose(load("auto"), Opener(broker)) == "classic"


def test_auto_takes_streams_for_an_empty_group_where_the_broker_has_them(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert choose(load("auto"), Opener(broker)) == "streams"
    assert "group 'app' has no members" in caplog.text
    assert choose(load("auto"), Opener(broker, without=STREAMS_GROUP_KEYS)) == "classic"


def test_auto_takes_classic_for_an_assignor_of_ones_own(broker: EmbeddedBroker) -> None:
    config = load("auto", task_assignor=lambda state: [])
    assert choose(config, Opener(broker)) == "classic"


def test_an_assignor_of_ones_own_is_refused_where_the_broker_assigns(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="not possible with group_protocol='streams'"):
        load("streams", task_assignor=lambda state: [])
    monkeypatch.setattr(group_protocol_choice, "find_live_protocol", lambda *_: "streams")
    with pytest.raises(ConfigError, match="speak it, in which the broker assigns tasks"):
        choose(load("auto", task_assignor=lambda state: []), Opener(broker))


def test_topics_by_a_pattern_are_read_by_the_classic_protocol(broker: EmbeddedBroker) -> None:
    app = App(GROUP)
    app.stream(topics.matching("a-.*"), key=serdes.string, value=serdes.string).to("copy")
    assert choose(load("auto"), Opener(broker), app.topology()) == "classic"
    with pytest.raises(ConfigError, match=r"topics.matching\('a-\.\*'\) is read, and Kafka up to"):
        choose(load("streams"), Opener(broker), app.topology())


def test_auto_takes_the_protocol_of_members(broker: EmbeddedBroker) -> None:
    with closing(Client(broker.bootstrap_servers)) as client:
        member = Member(client, GROUP, protocols=("stream",))
        member.join()
        member.sync()
        assert choose(load("auto"), Opener(broker)) == "classic"
        member.leave()
    assert choose(load("auto"), Opener(broker)) == "streams"


def test_settings_that_the_broker_decides_are_pointed_out(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    config = load("streams", num_standby_replicas=1, acceptable_recovery_lag=5)
    assert choose(config, Opener(broker)) == "streams"
    assert "num_standby_replicas of this worker is not used" in caplog.text
    assert "group configure app streams.num.standby.replicas=1" in caplog.text
    assert "no use for acceptable_recovery_lag" in caplog.text


@pytest.mark.parametrize(("own", "is_warned_of"), [(2, False), (1, True)])
def test_standbys_that_the_group_has_as_well_are_not_warned_of(
    caplog: pytest.LogCaptureFixture, own: int, is_warned_of: bool
) -> None:
    with EmbeddedBroker() as broker:
        configure_group(
            broker.bootstrap_servers, GROUP, standbys=2, session_ms=45_000, heartbeat_ms=5_000
        )
        config = load("streams", num_standby_replicas=own)
        choose_group_protocol(config, Topology(GROUP, ()), Opener(broker))
    assert ("num_standby_replicas of this worker is not used" in caplog.text) == is_warned_of
