"""Test what `millrace plan` says of a streams group by the protocol that a start would choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

import pytest

from coordinator.embedded import EmbeddedBroker
from streams import App, serdes, topics
from streams.commands import plan_group
from streams.commands.plan_group import StreamsGroupReview, review_streams_group
from streams.commands.plan_inputs import InputReview
from streams.commands.plan_output import build_plan_output
from streams.errors import AuthorizationError
from streams.membership.connection import BrokerConnection, ConnectionLost
from streams.membership.group_description import GroupDescription
from streams.membership.streams.described_group import StreamsGroupDescription
from streams.processes import group_protocol_choice
from streams.topology.streams_group_topology import INPUT, SentTopic, SentTopology


class FakeClients:
    """Connects to a broker for a command; `failure` is raised instead, if there is one."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        self._address = host, int(port)
        self.failure: Exception | None = None

    def ask_brokers(self, request: Callable[[Any], Any]) -> Any:
        if self.failure is not None:
            raise self.failure
        return request(self._open_connection)

    def _open_connection(self, address: tuple[str, int] | None) -> BrokerConnection:
        return BrokerConnection(address or self._address, "test", 10.0, Lock())


@pytest.fixture(scope="module")
def embedded_broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def clients(embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> FakeClients:
    """Return clients that see a streams group without members, formed with another input."""
    topology = SentTopology({("other", INPUT): SentTopic(0)})
    group = StreamsGroupDescription("Empty", 2, 2, (), {}, {}, topology)
    description = GroupDescription("Empty", "streams", "streams", (), group)
    monkeypatch.setattr(plan_group, "fetch_group_description", lambda *_: description)
    return FakeClients(embedded_broker)


def review(clients: Any, protocol: Any, topic: Any = "in", **settings: Any) -> StreamsGroupReview:
    app = App("app", group_protocol=protocol, **settings)
    app.stream(topic, key=serdes.string, value=serdes.string).to("out")
    return review_streams_group(app.topology(), app.config, clients)


def assign_nothing(_state: Any) -> list[Any]:
    return []


@pytest.mark.parametrize("protocol", ["auto", "streams"])
def test_a_group_that_a_start_would_join_is_compared(clients: FakeClients, protocol: str) -> None:
    assert "'other' is of" in review(clients, protocol).refusal
    assert "  remedy: end all workers" in review(clients, protocol).list_lines()[1]


def test_nothing_is_compared_where_a_start_would_choose_classic(
    clients: FakeClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert review(clients, "classic") == StreamsGroupReview()
    assert review(clients, "auto", task_assignor=assign_nothing) == StreamsGroupReview()
    assert review(clients, "auto", topics.matching("a-.*")) == StreamsGroupReview()
    monkeypatch.setattr(
        group_protocol_choice, "explain_broken_migration", lambda _: "4.2 loses them"
    )
    assert review(clients, "auto") == StreamsGroupReview()
    assert review(clients, "streams").refusal, "it is warned of, and joined"


def test_brokers_that_no_longer_serve_streams_groups_are_of_classic_ones(
    clients: FakeClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        group_protocol_choice, "explain_missing_streams_groups", lambda _: "it is not enabled"
    )
    assert review(clients, "auto") == StreamsGroupReview()
    (line,) = review(clients, "streams").list_lines()
    assert line.startswith("refused: a start ends with this: group_protocol='streams' is not poss")


def test_an_assignor_of_ones_own_is_refused_beside_members_of_a_streams_group(
    clients: FakeClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_protocol_choice, "find_live_protocol", lambda *_: "streams")
    refusal = review(clients, "auto", task_assignor=assign_nothing).refusal
    assert refusal.startswith("task_assignor is not possible here: members of group 'app'")


@pytest.mark.parametrize(
    "failure", [ConnectionLost("no answer"), AuthorizationError("Describe", "group", "app")]
)
def test_what_brokers_do_not_tell_is_not_known_and_json_says_so(
    clients: FakeClients, failure: Exception
) -> None:
    clients.failure = failure
    found = review(clients, "streams")
    assert (found.refusal, found.unknown) == ("", str(failure))
    (line,) = found.list_lines()
    assert line == f"whether a streams group takes this version is not known: {failure}"
    printed = build_plan_output(None, InputReview(), [], [], found, 0)
    assert (printed["refusals"], printed["group_unknown"]) == ([], str(failure))
    known = build_plan_output(None, InputReview(), [], [], StreamsGroupReview(), 0)
    assert known["group_unknown"] is None
