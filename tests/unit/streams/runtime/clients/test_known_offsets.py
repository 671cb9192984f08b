"""Test which ends of partitions are known while some of their leaders are away."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition

from streams.common.topic_partitions import Partition
from streams.errors import AuthorizationError, OutcomeUnknown
from streams.runtime.clients import admin_calls
from streams.runtime.clients.admin import Admin
from tests.processes import HANG_LIMIT_S

LED, OTHER, LEADERLESS = (Partition("c", number) for number in range(3))
LEADERS = {0: 1, 1: 2, 2: -1}
ENDS = {LED: 70, OTHER: 80}


class Client:
    """Stands in for the admin client; partition by partition it meets these errors first."""

    def __init__(self, **errors: list[int]) -> None:
        self.errors = {int(name.removeprefix("at_")): codes for name, codes in errors.items()}
        self.asked: list[set[int]] = []
        self.made_count = 0

    def list_topics(self, timeout: float) -> Any:
        partitions = {n: SimpleNamespace(leader=leader) for n, leader in LEADERS.items()}
        return SimpleNamespace(brokers={1: 1}, topics={"c": SimpleNamespace(partitions=partitions)})

    def list_offsets(
        self,
        specs: Mapping[TopicPartition, Any],
        isolation_level: IsolationLevel,
        request_timeout: float = HANG_LIMIT_S,
    ) -> dict[TopicPartition, Future[Any]]:
        self.asked.append({each.partition for each in specs})
        return {each: self._answer(each.partition) for each in specs}

    def _answer(self, number: int) -> Future[Any]:
        future = Future[Any]()
        if errors := self.errors.get(number):
            future.set_exception(KafkaException(KafkaError(errors.pop(0))))
        else:
            future.set_result(SimpleNamespace(offset=ENDS[Partition("c", number)]))
        return future


def create_admin(monkeypatch: pytest.MonkeyPatch, client: Client, retry_s: float = 0.0) -> Admin:
    def create_client(*_: object) -> Client:
        client.made_count += 1
        return client

    monkeypatch.setattr(admin_calls, "create_client", create_client)
    return Admin({}, "broker:9092", HANG_LIMIT_S, retry_s)


def fetch_known(monkeypatch: pytest.MonkeyPatch, client: Client) -> dict[Partition, int]:
    admin = create_admin(monkeypatch, client)
    return admin.fetch_available_latest_offsets([LED, OTHER, LEADERLESS], 5.0)


def test_a_new_topic_of_which_no_leader_is_known_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin = create_admin(monkeypatch, Client(at_0=[KafkaError._NOENT]), retry_s=HANG_LIMIT_S)
    assert admin.fetch_latest_offsets([LED]) == {LED: 70}


def test_a_partition_without_a_leader_is_left_out_and_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client()
    assert fetch_known(monkeypatch, client) == ENDS
    assert client.asked == [{0, 1}]


def test_a_leader_that_has_moved_is_found_by_a_new_client(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(at_1=[KafkaError.NOT_LEADER_FOR_PARTITION])
    assert fetch_known(monkeypatch, client) == ENDS
    assert client.asked == [{0, 1}, {1}]
    assert client.made_count == 2


def test_a_leader_that_does_not_answer_keeps_back_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(at_1=[KafkaError._TIMED_OUT] * 9)
    assert fetch_known(monkeypatch, client) == {LED: 70}
    assert client.asked == [{0, 1}, {1}]


def test_a_missing_right_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AuthorizationError):
        fetch_known(monkeypatch, Client(at_0=[KafkaError.TOPIC_AUTHORIZATION_FAILED]))


def test_a_cluster_that_does_not_answer_is_an_unknown_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Silent(Client):
        def list_topics(self, timeout: float) -> Any:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    with pytest.raises(OutcomeUnknown):
        fetch_known(monkeypatch, Silent())
