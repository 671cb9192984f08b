"""Build what the admin client sends, and read what it returns, in confluent-kafka's terms."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from streams.runtime.clients.replication import Replication


class Right(NamedTuple):
    """Represents the right to an operation on the resource of a name, which implies Describe."""

    operation: str
    name: str


def create_settings_change(topic: str, settings: Mapping[str, str]) -> ConfigResource:
    """Return a resource that sets settings of a topic, and leaves its others as they are."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    return ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)


def to_constant_name(operation: str) -> str:
    """Return an operation's name as confluent-kafka has it: DESCRIBE_CONFIGS."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()


def count_replicas(found: Any, topics: Collection[str]) -> Replication:
    """Return the brokers and the least replicas of these topics by a metadata response."""
    counts = {
        topic: min(len(each.replicas) for each in found.topics[topic].partitions.values())
        for topic in topics
        if topic in found.topics and found.topics[topic].partitions
    }
    return Replication(len(found.brokers), counts)


def count_partitions(found: Any) -> dict[str, int]:
    """Return the number of partitions of each topic of a metadata response without an error."""
    return {t.topic: len(t.partitions) for t in found.topics.values() if t.error is None}
