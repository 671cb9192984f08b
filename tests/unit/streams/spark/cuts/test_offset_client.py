"""Test that the time limit of a cut holds for the check of a secured connection, too."""

from __future__ import annotations

import pytest

from streams.connection.settings import parse_connection
from streams.errors import ConfigError
from streams.spark.cuts.offset_client import OffsetClient
from streams.spark.source import broker_access
from streams.spark.source.broker_access import BrokerAccess

SECURED = parse_connection(
    {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "a",
        "sasl.password": "b",
    }
)


def test_the_check_of_a_secured_connection_has_the_time_limit_of_the_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits_s: list[float] = []

    def check_connection(
        servers: str, security: object, timeout_s: float, *, asks_each_broker: bool
    ) -> None:
        limits_s.append(timeout_s)

    monkeypatch.setattr(broker_access, "check_connection", check_connection)
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:1"):
        OffsetClient(BrokerAccess("127.0.0.1:1", SECURED), timeout_ms=300)
    assert limits_s == [0.3]
