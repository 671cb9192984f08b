"""Test which brokers are said to be able to log requests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streams.doctor import request_loggers
from streams.doctor.request_loggers import find_brokers_with_request_logger
from streams.errors import AuthorizationError
from streams.membership.connection import ConnectionLost


class FakeConnection:
    def __init__(self, address: tuple[str, int]) -> None:
        if address[0] == "silent":
            raise ConnectionLost("refused")
        self.address = address

    def close(self) -> None:
        pass


def test_only_brokers_with_the_logger_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = {n: (h, 9092) for n, h in enumerate(("of-kafka", "silent", "guarded", "other"), 1)}
    clients = SimpleNamespace(open_connection=FakeConnection)
    facts: Any = SimpleNamespace(
        clients=lambda: clients, description=lambda: SimpleNamespace(brokers=brokers)
    )

    def fetch(connection: FakeConnection, kind: int, name: str, setting: str) -> str | None:
        assert (kind, setting) == (8, "kafka.request.logger")
        assert brokers[int(name)] == connection.address, "each broker knows its own loggers only"
        if connection.address[0] == "guarded":
            raise AuthorizationError("DescribeConfigs", "cluster", "kafka-cluster")
        return "WARN" if connection.address[0] == "of-kafka" else None

    monkeypatch.setattr(request_loggers, "fetch_setting", fetch)
    assert find_brokers_with_request_logger(facts) == [1]
