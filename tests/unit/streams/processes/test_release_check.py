"""Test what is refused, and what is warned of, for brokers of older releases."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from streams.errors import ConfigError
from streams.processes.cluster import find_or_start_cluster
from streams.processes.release_check import check_broker_release
from streams.settings.config import load_config
from tests.unit.streams.membership.fake_sasl_broker import FakeSaslBroker
from tests.unit.streams.membership.test_kafka_release import (
    KAFKA_2_8,
    KAFKA_3_6,
    KAFKA_3_9,
    KAFKA_4_0,
)

SERVERS = "kafka-1:9092"


@pytest.fixture
def fake() -> Iterator[FakeSaslBroker]:
    fake = FakeSaslBroker()
    yield fake
    fake.close()


def test_a_kafka_before_2_5_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        check_broker_release(load_config(bootstrap_servers=SERVERS), {1: 11, 9: 6})
    assert str(refused.value) == (
        f"bootstrap_servers={SERVERS}: by their API versions the brokers are of a Kafka older than "
        "2.5: Millrace needs 2.5 (KIP-447). Upgrade the brokers, best to 4.0 or newer"
    )


def test_a_ledger_is_refused_before_3_0() -> None:
    with pytest.raises(ConfigError) as refused:
        check_broker_release(load_config(bootstrap_servers=SERVERS, ledger=True), KAFKA_2_8)
    assert str(refused.value) == (
        "ledger=True needs Kafka 3.0 or newer (DescribeTransactions, KIP-664), and by their API "
        "versions the brokers are of Kafka 2.8: set ledger=False, or upgrade the brokers"
    )
    check_broker_release(load_config(bootstrap_servers=SERVERS, ledger=True), KAFKA_3_6)


@pytest.mark.parametrize(
    ("api_versions", "advice"),
    [
        (KAFKA_2_8, "Upgrade the brokers to 3.9.1, or to 4.0 or newer"),
        (KAFKA_3_6, "Upgrade the brokers to 3.9.1, or to 4.0 or newer"),
        (KAFKA_3_9, "If they are 3.9.1 or newer, which look alike to a client, all is well; else"),
    ],
)
def test_with_exactly_once_a_start_warns_of_offsets_that_may_be_lost_before_3_9_1(
    api_versions: dict[int, int], advice: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_broker_release(load_config(bootstrap_servers=SERVERS), api_versions)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "KAFKA-17507" in record.getMessage()
    assert advice in record.getMessage()


def test_nobody_is_warned_on_4_0_or_without_transactions(caplog: pytest.LogCaptureFixture) -> None:
    check_broker_release(load_config(bootstrap_servers=SERVERS), KAFKA_4_0)
    at_least_once = load_config(bootstrap_servers=SERVERS, processing_guarantee="at_least_once")
    check_broker_release(at_least_once, KAFKA_3_9)
    assert caplog.records == []


def test_the_cluster_of_an_application_is_looked_at_when_it_starts(fake: FakeSaslBroker) -> None:
    config = load_config(bootstrap_servers=fake.servers)
    assert find_or_start_cluster(config).bootstrap_servers == fake.servers
    fake.more_apis = {9: 6}
    with pytest.raises(ConfigError, match=r"of a Kafka older than 2\.5"):
        find_or_start_cluster(config)
