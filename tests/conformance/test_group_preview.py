"""Test `millrace group preview` of live groups of both protocols, on both brokers."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer
from typer.testing import CliRunner

from streams.commands.root import cli
from tests.brokers import Broker
from tests.conformance.calls import create_topic
from tests.conformance.wire import Client
from tests.processes import wait_until

PARTITIONS = 3


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_either_protocol_is_previewed_as_it_is(
    broker: Broker, unique: Callable[[str], str], protocol: str
) -> None:
    topic, group = unique("topic"), unique("group")
    with Client(broker.bootstrap_servers) as client:
        create_topic(client, topic, partitions=PARTITIONS)
    chosen = {"partition.assignment.strategy": "range"} if protocol == "classic" else {}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            **chosen,
        }
    )
    try:
        consumer.subscribe([topic])

        def has_all() -> bool:
            consumer.poll(0.1)
            return len(consumer.assignment()) == PARTITIONS

        wait_until(has_all, what="an assignment of all partitions")
        command = ["group", "preview", group, "--assignor", "sticky", "--json"]
        done = CliRunner().invoke(cli, [*command, "--bootstrap-servers", broker.bootstrap_servers])
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        (member,) = found["members"]
        assert (found["moved"], member["now"]) == (0, {topic: [0, 1, 2]})
        assert (member["then"], member["gains"], member["loses"]) == (member["now"], {}, {})
    finally:
        consumer.close()
