"""Test brokers with the settings that a container's Kafka usually has, and with protocols off."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from coordinator.config import BROKER_SETTINGS, TIME_UNIT_ALIASES
from coordinator.errors import Code
from coordinator.unused_settings import is_unused_setting
from tests import brokers
from tests.brokers import SETTINGS, Broker
from tests.conformance.batches import encode
from tests.conformance.calls import commit_offset, create_topic, end_offset, produce
from tests.conformance.consumers import Consumer, describe
from tests.conformance.members import Member, alone
from tests.conformance.wire import Api, Client

INTERNAL_TOPICS = {"__consumer_offsets", "__transaction_state"}
OF_A_CONTAINER = {
    "broker.rack": "a",
    "controlled.shutdown.enable": "true",
    "leader.imbalance.check.interval.seconds": "300",
    "min.insync.replicas": "1",
    "num.io.threads": "4",
    "offsets.topic.replication.factor": "1",
    "replica.fetch.max.bytes": "10485760",
    "replica.lag.time.max.ms": "30000",
    "share.coordinator.state.topic.replication.factor": "1",
    "socket.send.buffer.bytes": "102400",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
}
WITHOUT_THE_PROTOCOL = {"group.coordinator.rebalance.protocols": "classic"}
WITHOUT_THE_FEATURE = {"group.version": "0"}


def finalised_group_version(client: Client) -> int:
    """Return the level of `group.version` that clients see, 0 if it is not finalised."""
    answer = client.send(
        Api.API_VERSIONS, 4, client_software_name="conformance", client_software_version="1"
    )
    levels = {each.name: int(each.max_version_level) for each in answer.finalized_features}
    return levels.get("group.version", 0)


@pytest.fixture(
    scope="module", params=[WITHOUT_THE_PROTOCOL, WITHOUT_THE_FEATURE], ids=["protocols", "feature"]
)
def off(request: pytest.FixtureRequest, broker: Broker) -> Iterator[tuple[Client, int]]:
    """Start a broker of the same kind with settings of a container, without consumer groups.

    Return a connection to it and the level of `group.version` that it finalises.
    """
    if broker.kind == "address":
        pytest.skip("its settings are somebody else's")
    made = brokers.make(broker.kind, {**SETTINGS, **OF_A_CONTAINER, **request.param})
    try:
        made.start()
        with Client(made.bootstrap_servers, complete=made.kind == "kafka") as client:
            names = {each.name for each in client.send(Api.METADATA, 1, topics=None).topics}
            assert names == (INTERNAL_TOPICS if made.kind == "embedded" else set())
            found = client.send(Api.FIND_COORDINATOR, 2, key="anything", key_type=0)
            assert found.error_code == Code.NONE, found
            yield client, 1 if request.param is WITHOUT_THE_PROTOCOL else 0
    finally:
        made.close()


def test_consumer_groups_are_refused_and_classic_ones_served(
    off: tuple[Client, int], unique: Callable[[str], str], group: str
) -> None:
    client, level = off
    topic = unique("words")
    create_topic(client, topic)
    assert produce(client, topic, encode(b"one")).error_code == Code.NONE
    assert end_offset(client, topic) == 1
    assert finalised_group_version(client) == level
    answer = Consumer(client, group).send(
        member_epoch=0,
        rebalance_timeout=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=(),
    )
    assert answer.error_code == Code.UNSUPPORTED_VERSION
    assert describe(client, group).error_code == Code.UNSUPPORTED_VERSION
    alone(Member(client, group))
    commit_offset(client, unique("other-group"), topic, 1)


@pytest.mark.parametrize("name", ["replica.fetch.max.bytes", "broker.rack", "log.retention.hours"])
def test_a_setting_of_the_start_cannot_be_altered(client: Client, name: str) -> None:
    config = {"name": name, "config_operation": 0, "value": "7"}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [config]}
    answer = client.send(Api.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=True)
    [found] = answer.responses
    assert (found.error_code, found.error_message) == (
        Code.INVALID_REQUEST,
        f"Cannot update these configs dynamically: [{name}]",
    )


def test_every_setting_that_a_broker_describes_is_known_here(client: Client) -> None:
    resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
    options = {"include_synonyms": False, "include_documentation": False}
    answer = client.send(Api.DESCRIBE_CONFIGS, 4, resources=[resource], **options)
    names = {config.name for config in answer.results[0].configs}
    own = {field.replace("_", ".") for field in BROKER_SETTINGS} | TIME_UNIT_ALIASES.keys()
    assert not {each for each in names - own - {"broker.id"} if not is_unused_setting(each)}
