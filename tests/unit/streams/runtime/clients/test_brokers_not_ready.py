"""Test that a broker which lists no brokers is waited for, and is not taken for an empty cluster.

A KRaft broker that is starting, or that its controller has fenced, answers so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource

from streams.common.topic_partitions import Partition
from streams.errors import BrokerUnavailable, OutcomeUnknown
from streams.runtime.clients import Admin
from streams.runtime.clients import admin_calls as admin_module
from streams.runtime.clients import consumer as consumer_module
from streams.runtime.clients.consumer import DataConsumer
from streams.runtime.clients.errors import NotReady
from streams.runtime.clients.replication import Replication
from tests.processes import HANG_LIMIT_S

TOPIC = SimpleNamespace(
    topic="t", error=None, partitions={0: SimpleNamespace(leader=1, replicas=[1, 2])}
)
LIMIT, DEFAULT = "socket.request.max.bytes", 7


class Client:
    """Stands in for confluent-kafka's clients; its first `empty_answers` metadata are empty.

    `limits`: what each broker has for `LIMIT`, by its number; None for one that does not answer.
    """

    def __init__(self, empty_answers: float, limits: dict[int, int | None] | None = None) -> None:
        self.empty_answers = empty_answers
        self.limits = limits or {1: 100}

    def list_topics(self, topic: str = "", timeout: float = -1) -> Any:
        self.empty_answers -= 1
        if self.empty_answers >= 0:
            return SimpleNamespace(brokers={}, topics={})
        return SimpleNamespace(brokers=dict.fromkeys(self.limits), topics={"t": TOPIC})

    def describe_configs(
        self, resources: Sequence[ConfigResource], request_timeout: float
    ) -> dict[ConfigResource, Any]:
        if not resources:
            raise ValueError("Expected non-empty list of ConfigResource objects")
        assert len(resources) == 1, "Only one ConfigResource of type BROKER is allowed per call"
        future = Future[Any]()
        limit = self.limits[int(resources[0].name)]
        if limit is None:
            future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        else:
            future.set_result({LIMIT: SimpleNamespace(value=str(limit))})
        return {resources[0]: future}

    def create_topics(self, topics: Sequence[Any]) -> dict[str, Any]:
        created = Future[None]()
        created.set_result(None)
        return {each.topic: created for each in topics}

    def incremental_assign(self, partitions: Sequence[Any]) -> None:
        """Take partitions, of which nothing is read."""


@pytest.fixture
def create_admin(monkeypatch: pytest.MonkeyPatch) -> Callable[[Client, float], Admin]:
    def create(client: Client, retry_s: float) -> Admin:
        monkeypatch.setattr(admin_module, "create_client", lambda *given: client)
        return Admin({}, "broker:9092", HANG_LIMIT_S, retry_s)

    return create


CreateAdmin = Callable[[Client, float], Admin]
CALLS: dict[str, tuple[Callable[[Admin], Any], Any]] = {
    "partition counts": (lambda admin: admin.fetch_partition_counts(), {"t": 1}),
    "replication": (lambda admin: admin.fetch_replication(["t"]), Replication(1, {"t": 2})),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_stream_thread_learns_that_the_brokers_are_not_ready(
    create_admin: CreateAdmin, call: str
) -> None:
    with pytest.raises(NotReady, match="lists no brokers") as found:
        CALLS[call][0](create_admin(Client(empty_answers=1), 0.0))
    assert isinstance(found.value, OutcomeUnknown)


@pytest.mark.parametrize("call", CALLS)
def test_where_requests_are_retried_brokers_are_waited_for(
    create_admin: CreateAdmin, call: str
) -> None:
    ask, answer = CALLS[call]
    assert ask(create_admin(Client(empty_answers=2), HANG_LIMIT_S)) == answer


def test_a_limit_of_brokers_that_are_not_ready_is_the_default(create_admin: CreateAdmin) -> None:
    admin = create_admin(Client(empty_answers=1), 0.0)
    assert admin.fetch_strictest_broker_limit_or_default(LIMIT, DEFAULT) == DEFAULT


def test_a_limit_is_that_of_the_strictest_of_several_brokers(create_admin: CreateAdmin) -> None:
    admin = create_admin(Client(0, {1: 300, 2: 200, 3: 400}), 0.0)
    assert admin.fetch_strictest_broker_limit_or_default(LIMIT, DEFAULT) == 200


def test_a_broker_that_does_not_answer_is_taken_to_be_as_the_others(
    create_admin: CreateAdmin,
) -> None:
    admin = create_admin(Client(0, {1: None, 2: 200, 3: 400}), 0.0)
    assert admin.fetch_strictest_broker_limit_or_default(LIMIT, DEFAULT) == 200
    assert (
        create_admin(Client(0, {1: None}), 0.0).fetch_strictest_broker_limit_or_default(
            LIMIT, DEFAULT
        )
        == DEFAULT
    )


def test_a_new_topic_is_waited_for_while_brokers_are_not_ready(create_admin: CreateAdmin) -> None:
    client = Client(empty_answers=2)
    create_admin(client, HANG_LIMIT_S).create_topics({"t": 1}, {}, 1)
    assert client.empty_answers == -1


def test_a_start_waits_for_brokers_that_are_not_ready(create_admin: CreateAdmin) -> None:
    admin = create_admin(Client(empty_answers=2), 0.0)
    assert admin.fetch_partition_counts_at_start(HANG_LIMIT_S) == {"t": 1}


def test_a_start_is_refused_while_brokers_stay_not_ready(create_admin: CreateAdmin) -> None:
    admin = create_admin(Client(empty_answers=float("inf")), 0.0)
    refusal = r"'broker:9092' within 0\.2 s .*lists no brokers.*check the address"
    with pytest.raises(BrokerUnavailable, match=refusal):
        admin.fetch_partition_counts_at_start(0.2)


def test_a_consumer_takes_partitions_before_brokers_are_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer_module, "create_client", lambda *given: Client(1))
    DataConsumer({}).add_partitions({Partition("t", 0): 5})
