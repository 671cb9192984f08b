"""Test that open transactions of threads outside the group are aborted, and no others."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, Producer

from streams.membership.connection import BrokerConnection, connect_to_any_server
from streams.membership.departed_producers import abort_departed_transactions
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S
from tests.reading import open_partitions

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]


def begun_transaction(topics: Topics, transactional_id: str) -> Producer:
    producer = Producer({"bootstrap.servers": topics.servers, "transactional.id": transactional_id})
    producer.init_transactions(HANG_LIMIT_S)
    producer.begin_transaction()
    producer.produce(topics.target, transactional_id, partition=0)
    assert producer.flush(HANG_LIMIT_S) == 0
    return producer


def test_only_the_transactions_of_departed_threads_are_aborted(topics: Topics) -> None:
    application = topics.application

    def open_connection(address: tuple[str, int] | None) -> BrokerConnection:
        if address is None:
            return connect_to_any_server(topics.servers, open_connection)
        return BrokerConnection(address, "test", HANG_LIMIT_S, threading.Lock())

    departed, member = (f"{application}-{uuid4()}-0" for _ in range(2))
    other_application, by_hand = f"{application}-eu-{uuid4()}-0", f"{application}-by-hand"
    others = [begun_transaction(topics, each) for each in (member, other_application, by_hand)]
    fenced = begun_transaction(topics, departed)
    assert abort_departed_transactions(open_connection, application, {member}) == [departed]
    with pytest.raises(KafkaException, match=r"[Ff]enced|newer producer"):
        fenced.commit_transaction(HANG_LIMIT_S)
    assert open_partitions(topics.servers, topics.target, 1) == [0]
    for producer in others:
        producer.commit_transaction(HANG_LIMIT_S)
    assert open_partitions(topics.servers, topics.target, 1) == []
    assert len(list(topics.messages(topics.target))) == len(others)
    assert abort_departed_transactions(open_connection, application, set()) == []
