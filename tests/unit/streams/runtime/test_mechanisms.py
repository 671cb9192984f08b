"""GSSAPI is refused, with what the build of librdkafka has and what no build changes."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from streams.connection.settings import ConnectionSettings, parse_connection
from streams.errors import ConfigError
from streams.processes.cluster import find_or_start_cluster
from streams.runtime.clients import refuse_gssapi
from streams.settings.config import load_config
from streams.spark.source.broker_access import BrokerAccess

KERBEROS = {"security.protocol": "SASL_SSL", "sasl.mechanism": "gssapi"}
MEMBERSHIP = "Millrace's group membership, .* doesn't speak it"
LACKING = f"^connection: sasl.mechanism GSSAPI .* no sasl_gssapi among .*libsasl2.*{MEMBERSHIP}"


def kerberos() -> ConnectionSettings:
    return parse_connection(KERBEROS)


def test_the_refusal_says_what_to_build_where_librdkafka_lacks_the_feature() -> None:
    with pytest.raises(ConfigError, match=LACKING):
        refuse_gssapi(kerberos())  # by confluent-kafka's wheel, which is built without


def test_the_refusal_asks_for_no_build_where_librdkafka_has_the_feature() -> None:
    asked: list[Any] = []
    with pytest.raises(ConfigError, match=f"has sasl_gssapi among .* but {MEMBERSHIP}") as refused:
        refuse_gssapi(kerberos(), asked.append)
    assert asked[0]["builtin.features"] == "sasl_gssapi"
    assert "libsasl2" not in str(refused.value)


def test_librdkafka_takes_a_feature_that_it_has_and_refuses_another() -> None:
    Producer({"builtin.features": "sasl_scram", "log_level": 0})
    with pytest.raises(KafkaException) as refused:
        Producer({"builtin.features": "sasl_gssapi"})
    assert refused.value.args[0].code() == KafkaError._INVALID_ARG


def test_applications_and_spark_refuse_it_before_they_look_for_a_broker() -> None:
    config = load_config(bootstrap_servers="127.0.0.1:1", connection=KERBEROS)
    with pytest.raises(ConfigError, match=LACKING):
        find_or_start_cluster(config)
    with pytest.raises(ConfigError, match=LACKING):
        BrokerAccess("127.0.0.1:1", kerberos()).check_connection()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_other_mechanisms_are_taken_without_a_look_at_the_build(mechanism: str) -> None:
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism}
    given |= {"sasl.username": "user", "sasl.password": "secret"}
    asked: list[Any] = []
    refuse_gssapi(parse_connection(given), asked.append)
    assert asked == []
