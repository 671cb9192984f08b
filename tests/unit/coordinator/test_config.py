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
    assert config.setting_text("num_partitions") == "4"


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
