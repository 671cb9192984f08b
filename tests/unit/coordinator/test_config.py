from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.config import BrokerConfig, WrongSetting

HERE = Path()


def test_settings_have_kafkas_names() -> None:
    config = BrokerConfig.from_settings(
        HERE, {"num.partitions": "4", "auto.create.topics.enable": "false", "node.id": 7}
    )
    assert (config.num_partitions, config.auto_create_topics_enable, config.node_id) == (
        4,
        False,
        7,
    )
    assert config.format_setting("num_partitions") == "4"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num.partition", "4", "unknown setting num.partition: did you mean num.partitions"),
        ("frobnicate", "4", "unknown setting frobnicate: it is not a setting"),
        ("host", "x", "unknown setting host"),
        ("num.partitions", "four", "num.partitions=four: must be a whole number"),
        ("num.partitions", "0", "num.partitions=0: must be from 1"),
        ("auto.create.topics.enable", "yes", "must be true or false"),
        ("log.message.timestamp.type", "Never", "must be CreateTime or LogAppendTime"),
        ("group.min.session.timeout.ms", "9999999", "must not be above"),
        ("group.consumer.session.timeout.ms", "44999", "min.session.timeout.ms=45000: must not"),
        ("group.consumer.session.timeout.ms", "60001", "must not be above .*=60000"),
        ("group.consumer.heartbeat.interval.ms", "15001", "must not be above .*=15000"),
        ("group.consumer.assignment.interval.ms", "15001", "must not be above .*=15000"),
        ("group.consumer.assignors", "", "must name each of one or more assignors once"),
        ("group.consumer.assignors", "range,range", "must name each of one or more"),
        ("group.consumer.assignors", "mine", "must be uniform or range"),
        ("group.consumer.migration.policy", "never", "must be bidirectional or disabled or"),
        ("offsets.topic.replication.factors", "1", "did you mean offsets.topic.replication.factor"),
        ("replica.fetch.max.byte", "1", "did you mean replica.fetch.max.bytes"),
        ("offsets.topic.replication.factor", "3", "=3: must be 1: this broker is the only one"),
        ("transaction.state.log.min.isr", "2", "=2: must be 1: this broker is the only one"),
        ("min.insync.replicas", "2", "=2: must be 1: this broker is the only one"),
        ("default.replication.factor", "3", "=3: must be 1: this broker is the only one"),
        ("compression.type", "zstd", "must be producer: topics keep what producers send"),
        ("listeners", "PLAINTEXT://:9092,SASL_SSL://:9093", "SASL_SSL can't be had: .* plain text"),
        ("listener.security.protocol.map", "LAN:SSL", "SSL can't be had: this broker has plain"),
        ("ssl.keystore.location", "/keys", "must be empty or none: this broker has plain text"),
        ("authorizer.class.name", "org.example.Mine", "must be empty: this broker has plain text"),
        ("group.coordinator.rebalance.protocols", "consumer", "must have classic"),
        ("group.coordinator.rebalance.protocols", "classic,mine", "=mine: must be classic or"),
        ("group.version", "2", "group.version=2: must be from 0 to 1"),
    ],
)
def test_a_wrong_setting_is_said_with_its_value_and_what_to_do(
    name: str, value: str, message: str
) -> None:
    with pytest.raises(WrongSetting, match=message):
        BrokerConfig.from_settings(HERE, {name: value})


def test_a_member_has_to_be_heard_of_more_often_than_it_has_to_be_missed() -> None:
    settings = {
        "group.consumer.min.session.timeout.ms": "1",
        "group.consumer.session.timeout.ms": "5000",
    }
    with pytest.raises(WrongSetting, match=r"heartbeat.interval.ms=5000: must be below group"):
        BrokerConfig.from_settings(HERE, settings)


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3}, 180_000),
        ({"log.retention.hours": 2, "log.retention.ms": 5, "log.retention.minutes": 3}, 5),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_a_setting_counts(
    settings: dict[str, object], retention_ms: int
) -> None:
    config = BrokerConfig.from_settings(HERE, settings)
    assert config.log_retention_ms == retention_ms


OF_A_CONTAINER = {
    "advertised.listeners": "PLAINTEXT://localhost:9092,LAN://kafka:29092",
    "broker.rack": "a",
    "controlled.shutdown.enable": "true",
    "controller.quorum.voters": "1@kafka:9093",
    "inter.broker.listener.name": "LAN",
    "listener.security.protocol.map": "LAN:PLAINTEXT,CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093,LAN://:29092",
    "log.dirs": "/var/lib/kafka/data",
    "min.insync.replicas": "1",
    "num.network.threads": "3",
    "offsets.topic.replication.factor": "1",
    "process.roles": "broker,controller",
    "replica.fetch.max.bytes": "10485760",
    "ssl.client.auth": "none",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": 1,
}


def test_settings_of_a_container_have_no_effect_which_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = BrokerConfig.from_settings(HERE, {**OF_A_CONTAINER, "num.partitions": "2"})
    assert config == BrokerConfig(data_dir=HERE, num_partitions=2)
    [said] = caplog.messages
    assert said == (
        "settings of Kafka that have no effect on this broker ('Settings' in docs/broker.md): "
        + ", ".join(OF_A_CONTAINER)
    )


def test_settings_that_all_have_an_effect_are_not_talked_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    BrokerConfig.from_settings(HERE, {"num.partitions": "2", "log.retention.hours": "1"})
    assert not caplog.messages


def test_broker_id_is_an_older_name_of_node_id() -> None:
    assert BrokerConfig.from_settings(HERE, {"broker.id": "7"}).node_id == 7
    assert BrokerConfig.from_settings(HERE, {"broker.id": "7", "node.id": "7"}).node_id == 7
    with pytest.raises(WrongSetting, match=r"broker\.id=7: must be node\.id=8"):
        BrokerConfig.from_settings(HERE, {"broker.id": "7", "node.id": "8"})


@pytest.mark.parametrize(
    ("protocols", "has_consumer"),
    [("classic", False), ("classic, consumer", True), ("classic,streams,share", False)],
)
def test_the_protocols_of_groups_may_be_switched_off(protocols: str, has_consumer: bool) -> None:
    settings = {"group.coordinator.rebalance.protocols": protocols}
    config = BrokerConfig.from_settings(HERE, settings)
    assert config.allows_consumer_protocol is has_consumer
