"""Define the settings of single clients, and of the internal topics that are created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from pydantic import BeforeValidator
from pydantic_settings import BaseSettings

from streams.connection.files import flatten_tables

_LOSING_SETTINGS = {
    "cleanup.policy": "it follows from what the topic holds",
    "retention.ms": "records that are still needed would be lost",
    "retention.bytes": "records that are still needed would be lost",
    "message.timestamp.type": "records keep their own times",
}
"""The settings of topics that `topic_defaults` refuses, and why."""


_COMPACTION_LAG = "min.compaction.lag.ms"


def parse_topic_defaults(given: Any) -> dict[str, str]:
    """Return settings of topics as text, by their names.

    Raises ValueError for one that would lose records of internal topics.
    """
    if not isinstance(given, dict):
        raise ValueError('it takes settings of topics by name, as in {"min.insync.replicas": 2}')
    settings = dict(flatten_tables(given))
    for name in settings:
        if name in _LOSING_SETTINGS:
            raise ValueError(
                f"{name} can't be set for all internal topics: {_LOSING_SETTINGS[name]}. Set it "
                f"for one store: Store.persistent(..., logged={{{name!r}: ...}})"
            )
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


def check_compaction_lag(topic_defaults: Mapping[str, str], cut_retention_ms: int) -> None:
    """Raise ValueError if `topic_defaults` would let changelogs lose what cuts need."""
    lag_ms = topic_defaults.get(_COMPACTION_LAG)
    if lag_ms is None or not cut_retention_ms:
        return
    if not lag_ms.isdecimal() or int(lag_ms) < cut_retention_ms:
        raise ValueError(
            f"topic_defaults: {_COMPACTION_LAG} ({lag_ms}) must be at least cut_retention_ms "
            f"({cut_retention_ms}), so that cuts can be read: leave it out, which sets it so"
        )


def check_delivery_timeout(producer: Mapping[str, Any], transaction_timeout_ms: int) -> None:
    """Raise ValueError if records may be sent for longer than their transaction lasts.

    librdkafka refuses that of a transactional producer.
    """
    for name in ("delivery.timeout.ms", "message.timeout.ms"):
        given = str(producer.get(name, ""))
        if given.isdecimal() and not 0 < int(given) <= transaction_timeout_ms:
            raise ValueError(
                f"producer: {name} ({given}) must be at most transaction_timeout_ms "
                f"({transaction_timeout_ms}), after which the transaction is aborted: leave it "
                "out, which makes them equal, or raise transaction_timeout_ms"
            )


class ClientOptions(BaseSettings):
    """Holds librdkafka's settings of one kind of consumer each, and settings of internal topics."""

    main_consumer: dict[str, Any] = {}
    """Settings of the consumers that read inputs, over those of `consumer`."""
    restore_consumer: dict[str, Any] = {}
    """Settings of the consumers that restore stores and follow changelogs, over `consumer`."""
    global_consumer: dict[str, Any] = {}
    """Settings of the consumer that reads the topics of global tables, over `consumer`."""
    topic_defaults: Annotated[dict[str, Any], BeforeValidator(parse_topic_defaults)] = {}
    """Settings with which all internal topics are created, by Kafka's names, as
    `min.insync.replicas`; those of a store go over them (Kafka Streams: topic.*)."""


class ClientKeywords(TypedDict, total=False):
    """Holds the same settings as keyword arguments of `App`."""

    main_consumer: dict[str, Any]
    restore_consumer: dict[str, Any]
    global_consumer: dict[str, Any]
    topic_defaults: dict[str, Any]
