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
    assert config.text_of("num_partitions") == "4"


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
    ],
)
def test_a_wrong_setting_is_said_with_its_value_and_what_to_do(
    name: str, value: str, message: str
) -> None:
    with pytest.raises(WrongSetting, match=message):
        BrokerConfig.from_settings(HERE, {name: value})


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
