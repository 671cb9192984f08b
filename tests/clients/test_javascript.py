"""Test kafkajs, whose requests are of old versions."""

from __future__ import annotations

from collections.abc import Callable

from tests.brokers import Broker
from tests.clients.copying import copy_under_kills, prepare


def test_a_copy_is_exact_though_an_embedded_broker_is_killed(
    broker: Broker, javascript: list[str], unique: Callable[[str], str]
) -> None:
    copy_under_kills(broker, javascript, prepare(broker, unique))
