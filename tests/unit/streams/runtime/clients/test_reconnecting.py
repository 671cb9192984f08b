"""Test how long clients wait before they try a broker again that was away."""

from __future__ import annotations

from typing import Any

import pytest

from streams.errors import ConfigError
from streams.runtime.clients import KafkaClientSupplier, factory
from streams.settings.config import StreamsConfig

LONGEST = "reconnect.backoff.max.ms"


def list_longest_waits_ms(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> set[int]:
    """Return the longest waits of all clients with these settings of an application."""
    found: list[dict[str, Any]] = []
    for name in ("DataConsumer", "Admin", "ClusterAdmin", "TopicRecordReader"):
        monkeypatch.setattr(factory, name, lambda given, *_, **__: found.append(given))
    monkeypatch.setattr(factory, "StreamsProducer", lambda _, given, **__: found.append(given))
    supplier = KafkaClientSupplier("a", StreamsConfig(**settings), "kafka:9092")
    for kind in ("consumer", "restore_consumer", "global_consumer", "standby_consumer", "producer"):
        getattr(supplier, f"create_{kind}")("a-0")
    supplier.create_plain_producer("a-0", 1.0)
    supplier.create_admin()
    supplier.create_cluster_admin(1.0)
    supplier.create_topic_reader(committed_only=True)
    assert len(found) == 9
    return {given[LONGEST] for given in found}


def test_every_client_tries_again_after_a_second_as_kafka_s_own_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert list_longest_waits_ms(monkeypatch) == {1_000}


def test_a_user_sets_another_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list_longest_waits_ms(monkeypatch, producer={LONGEST: 7_000}) == {1_000, 7_000}


def test_a_longer_first_wait_is_not_refused_by_librdkafka() -> None:
    config = StreamsConfig(consumer={"reconnect.backoff.ms": 2_500})
    KafkaClientSupplier("a", config, "kafka:9092").check_user_settings()


@pytest.mark.parametrize("kind", ["consumer", "restore_consumer", "global_consumer", "producer"])
@pytest.mark.parametrize("backoff_ms", ["fast", "", "²", -1, 3_600_001, 10**40, 1e400])
def test_a_first_wait_that_is_none_is_refused_by_its_name(kind: str, backoff_ms: object) -> None:
    settings: dict[str, Any] = {kind: {"reconnect.backoff.ms": backoff_ms}}
    supplier = KafkaClientSupplier("a", StreamsConfig(**settings), "kafka:9092")
    with pytest.raises(ConfigError, match=r'"?reconnect\.backoff\.ms'):
        supplier.check_user_settings()


@pytest.mark.parametrize("backoff_ms", ["2500", "+2500", 2_500.5])
def test_a_first_wait_is_read_as_librdkafka_does(
    monkeypatch: pytest.MonkeyPatch, backoff_ms: object
) -> None:
    config = StreamsConfig(consumer={"reconnect.backoff.ms": backoff_ms})
    KafkaClientSupplier("a", config, "kafka:9092").check_user_settings()
    settings = {"reconnect.backoff.ms": backoff_ms}
    assert list_longest_waits_ms(monkeypatch, consumer=settings) == {2_500}
