"""Build what the admin client sends, and read what it returns, in confluent-kafka's terms."""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from streams.command_lines import format_broker_command
from streams.common.addresses import format_address, is_loopback, parse_addresses
from streams.errors import BrokerUnavailable
from streams.runtime.clients.errors import NotReady
from streams.runtime.clients.replication import Replication

_CONNECT_TIMEOUT_S = 1.0


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


def require_brokers(metadata: Any) -> Any:
    """Return a metadata response that lists brokers. Raises NotReady for one that lists none.

    A KRaft broker that is starting, or that the controller has fenced since it has not heard from
    it, answers so, and lists no topics either: that says nothing about the cluster.
    """
    if not metadata.brokers:
        raise NotReady("list topics: the broker that answers lists no brokers: it is not ready")
    return metadata


def create_no_broker_error(servers: str, timeout_s: float, error: Exception) -> BrokerUnavailable:
    """Return the error for brokers that did not answer within `timeout_s`, with what to do."""
    why = error.args[0].str() if isinstance(error, KafkaException) else error
    begun = (
        f"no Kafka broker answers at bootstrap_servers={servers!r} within {timeout_s:g} s ({why})"
    )
    if isinstance(error, KafkaException) and (listening := _find_listening_address(servers)):
        return BrokerUnavailable(
            f"{begun}, though a process listens at {listening}: it is stopped, as by "
            "SIGSTOP, or overloaded, or expects TLS, or is no Kafka broker. Look at that process: "
            "another broker would not help"
        )
    return BrokerUnavailable(
        f"{begun}: check the address, and that its broker runs; where it is to be Millrace's own "
        f"broker on this machine, start it with {format_broker_command(servers)}, and with the "
        "directory that it had before: an empty one is another cluster"
    )


def _find_listening_address(servers: str) -> str | None:
    """Return the first of these addresses at which a process listens; None if none is known to.

    The kernel accepts connections of a process that is stopped, until their queue is full. From
    then on it drops them, which on this machine tells that somebody listens; of another one a
    router may have dropped them.
    """
    for address in parse_addresses(servers):  # they were checked when the client was created
        try:
            with socket.create_connection(address, timeout=_CONNECT_TIMEOUT_S):
                return format_address(address)
        except TimeoutError:
            if is_loopback(address[0]):
                return format_address(address)
        except OSError:
            continue
    return None


def count_replicas(metadata: Any, topics: Collection[str]) -> Replication:
    """Return the brokers and the least replicas of these topics by a metadata response."""
    counts = {
        topic: min(len(each.replicas) for each in metadata.topics[topic].partitions.values())
        for topic in topics
        if topic in metadata.topics and metadata.topics[topic].partitions
    }
    return Replication(len(metadata.brokers), counts)


def count_partitions(metadata: Any) -> dict[str, int]:
    """Return the number of partitions of each topic of a metadata response without an error."""
    return {t.topic: len(t.partitions) for t in metadata.topics.values() if t.error is None}
