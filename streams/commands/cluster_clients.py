"""Connect a command to its cluster: any Kafka, or the embedded broker of a state directory.

A command that looks at a cluster starts no embedded broker: where none runs, it says so.
"""

from __future__ import annotations

import difflib
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from state.errors import StateError
from streams.command_lines import format_command, note_invocation
from streams.command_options import exit_on_user_error
from streams.common.addresses import Address
from streams.common.names import explain_illegal_name
from streams.common.topic_partitions import Partition
from streams.connection.security import ConnectionSecurity
from streams.errors import ConfigError, UserError
from streams.membership.application_group import STREAMS
from streams.membership.connection import (
    BrokerConnection,
    BrokerNotReady,
    ConnectionLost,
    OpenConnection,
)
from streams.membership.connection_check import CHECK_TIMEOUT_S
from streams.membership.server_rotation import ServerRotation
from streams.membership.streams.group_listing import list_streams_groups
from streams.processes.cluster import Cluster, find_or_start_cluster
from streams.processes.embedded import require_embedded_broker
from streams.runtime.clients import Admin, KafkaClientSupplier, StreamsProducer
from streams.runtime.clients.cluster_admin import ClusterAdmin, GroupListing
from streams.runtime.clients.errors import librdkafka_log
from streams.runtime.clients.retrying import call_with_retries
from streams.runtime.clients.topic_limits import TopicLimits, create_limit_lookup
from streams.runtime.clients.topic_reader import TopicRecordReader
from streams.settings.command_line import read_connection_option
from streams.settings.config import EMBEDDED, StreamsConfig, load_config

T = TypeVar("T")
BROKER_WAIT_S = 10.0
CLIENT_NAME = "millrace"


class ClusterClients:
    """Makes the clients of one command, and keeps the metadata that it fetched first."""

    def __init__(self, config: StreamsConfig, cluster: Cluster) -> None:
        self.config = config
        self.servers = cluster.bootstrap_servers
        self._cluster = cluster
        self._rotation = ServerRotation(self.servers)
        self._supplier = KafkaClientSupplier(CLIENT_NAME, config, self.servers, cluster.security)

    @cached_property
    def admin(self) -> Admin:
        """Return the client that looks up topics and offsets."""
        return self._supplier.create_admin(retry_s=BROKER_WAIT_S)

    def create_admin(self, timeout_s: float) -> Admin:
        """Create another client for topics and offsets, which waits for an answer so long."""
        return self._supplier.create_admin(timeout_s, retry_s=timeout_s)

    @property
    def security(self) -> ConnectionSecurity:
        """Return how connections to the brokers are secured."""
        return self._cluster.security.value

    @cached_property
    def cluster_admin(self) -> ClusterAdmin:
        """Return the client that deletes topics, and lists and resets groups."""
        return self._supplier.create_cluster_admin(BROKER_WAIT_S)

    @cached_property
    def partition_counts(self) -> dict[str, int]:
        """Return every topic's number of partitions. Raises ConfigError if no broker answers."""
        return self.admin.fetch_partition_counts_at_start(BROKER_WAIT_S)

    def create_reader(self, *, committed_only: bool) -> TopicRecordReader:
        """Create a reader of topics, which is to be closed."""
        return self._supplier.create_topic_reader(committed_only=committed_only)

    def create_producer(self, batch_bytes_max: int | None = None) -> StreamsProducer:
        """Create a producer, with transactions if the config is exactly once.

        Its transactional id is new, so that no other command is fenced. Batches of several records
        have at most `batch_bytes_max` bytes.
        """
        name = f"{CLIENT_NAME}-produce-{uuid.uuid4().hex}"
        return self._supplier.create_producer(name, batch_bytes_max=batch_bytes_max)

    def fetch_topic_limits(self, topic: str) -> TopicLimits | None:
        """Return the limits that a topic's settings set for records; None if they can't be read."""
        fetch = create_limit_lookup(self.admin.fetch_topic_settings, self.config.producer)
        return fetch(topic)

    def list_partitions(self, topic: str) -> list[Partition]:
        """Return the partitions of a topic. Raises ConfigError if there is no such topic."""
        if topic not in self.partition_counts:
            raise ConfigError(self._explain_missing_topic(topic))
        return [Partition(topic, number) for number in range(self.partition_counts[topic])]

    def choose_existing_partitions(self, topic: str, numbers: list[int] | None) -> list[Partition]:
        """Return the partitions of a topic with these numbers, or all. Raises ConfigError."""
        partitions = self.list_partitions(topic)
        for number in numbers or ():
            if not 0 <= number < len(partitions):
                raise ConfigError(
                    f"--partition {number}: topic {topic!r} has partitions 0 to "
                    f"{len(partitions) - 1}"
                )
        return [partitions[number] for number in sorted(set(numbers))] if numbers else partitions

    def open_connection(self, address: Address | None) -> BrokerConnection:
        """Connect to an address, or to any of the cluster's bootstrap servers."""

        def connect_to_broker(to: Address) -> BrokerConnection:
            security = self._cluster.security.value
            return BrokerConnection(to, CLIENT_NAME, BROKER_WAIT_S, threading.Lock(), security)

        if address is not None:
            return connect_to_broker(address)

        return self._rotation.connect_to_next(connect_to_broker)

    def list_groups(self) -> list[GroupListing]:
        """Return all groups of the cluster by name, streams groups and mere offsets included."""
        found = {each.group: each for each in self.cluster_admin.list_groups()}
        for each in self.ask_brokers(list_streams_groups):
            found[each.group] = GroupListing(each.group, each.state, STREAMS)
        return sorted(found.values())

    def ask_brokers(self, request: Callable[[OpenConnection], T]) -> T:
        """Send requests over connections of its own, and again while what they need moves.

        `request` is given what opens connections. A leader or a coordinator that moves to another
        broker is waited for as long as a broker is.
        """
        return call_with_retries(
            lambda _: request(self.open_connection), BROKER_WAIT_S, BrokerNotReady
        )

    def _explain_missing_topic(self, topic: str) -> str:
        """Return the message for a topic that does not exist, with the name that may be meant."""
        if (fault := explain_illegal_name(topic)) is not None:
            return f"{topic!r:.300} is no name of a topic: {fault}"
        close = difflib.get_close_matches(topic, self.partition_counts, n=1)
        hint = (
            f"did you mean {close[0]!r}?"
            if close
            else f"{format_command('create-topics', topic)} creates it"
        )
        return f"there is no topic {topic!r} on {self.servers}: {hint}"


def connect_clients(
    config: StreamsConfig, check_timeout_s: float = CHECK_TIMEOUT_S
) -> ClusterClients:
    """Return the clients for the cluster of the settings; no embedded broker is started.

    The check of the connection takes `check_timeout_s` at most.
    Raises ConfigError where none runs, or for settings that can't be used.
    """
    if config.bootstrap_servers == EMBEDDED:
        require_embedded_broker(config.state_dir)
    note_invocation(
        bootstrap_servers=config.bootstrap_servers,
        state_dir=config.state_dir,
        has_connection_in_code=False,
    )
    return ClusterClients(config, find_or_start_cluster(config, check_timeout_s))


@contextmanager
def exit_on_cluster_error() -> Iterator[None]:
    """Exit with status 2 and one line on an error of the user, the cluster or a store on disk.

    librdkafka's own lines about brokers that don't answer are kept off the terminal meanwhile.
    """
    level = librdkafka_log.level
    librdkafka_log.setLevel(logging.CRITICAL)
    try:
        with exit_on_user_error():
            try:
                yield
            except (ConnectionLost, StateError) as error:
                raise UserError(str(error)) from error
    finally:
        librdkafka_log.setLevel(level)


def load_command_config(
    config: Path | None = None,
    *,
    bootstrap_servers: str | None = None,
    state_dir: Path | None = None,
    connection: Path | None = None,
    **settings: Any,
) -> StreamsConfig:
    """Return the settings of a command from its options. Raises ConfigError."""
    note_invocation(config_file=config, connection_file=connection)
    given: dict[str, Any] = {"bootstrap_servers": bootstrap_servers, "state_dir": state_dir}
    given = {name: each for name, each in given.items() if each is not None}
    return load_config(config, {**given, **read_connection_option(connection), **settings})


@contextmanager
def connect_command(
    bootstrap_servers: str | None,
    state_dir: Path | None,
    connection: Path | None,
    config: Path | None = None,
    **settings: Any,
) -> Iterator[ClusterClients]:
    """Provide the clients of a command, and exit with one line where something can't be done."""
    with exit_on_cluster_error():
        yield connect_clients(
            load_command_config(
                config,
                bootstrap_servers=bootstrap_servers,
                state_dir=state_dir,
                connection=connection,
                **settings,
            )
        )
