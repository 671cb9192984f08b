"""Fetch what the doctor looks at on a cluster: brokers, settings, topics, transactions, groups.

Each fact is fetched when a point first needs it, and each request ends after `REQUEST_WAIT_S`.
Where no broker answers, everything that follows fails at once with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple, TypeAlias

from streams.commands.cluster_clients import ClusterClients, connect_clients
from streams.common.topic_partitions import Partition
from streams.doctor.broker_probe import BrokerProbe, probe_brokers
from streams.doctor.fetched_once import fetched_once
from streams.errors import AuthorizationError
from streams.membership import transactions
from streams.membership.connection import BrokerConnection
from streams.membership.transactions import DescribedTransactionState, OpenProducer
from streams.runtime.access.resource_names import is_own_transactional_id
from streams.runtime.clients import Admin
from streams.runtime.clients.cluster_admin import (
    ClusterAdmin,
    ClusterDescription,
    GroupListing,
)
from streams.settings.config import StreamsConfig

ProducerId: TypeAlias = int
ProducerEpoch: TypeAlias = int

REQUEST_WAIT_S = 5.0
_CONNECT_WAIT_S = 4.0
"""The seconds that the check of the connection waits, and then a client's first request."""
OFFSETS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"


class TransactionFacts(NamedTuple):
    """Holds the open transactions that coordinators know; `gap` says why some may be missing."""

    open: Sequence[DescribedTransactionState]
    undescribed: Sequence[str]
    gap: str | None


class ClusterFacts:
    """Fetches the facts of one cluster, each once."""

    def __init__(self, config: StreamsConfig) -> None:
        self.config = config
        self._topic_settings: dict[str, dict[str, str]] = {}
        self._refusals: dict[str, AuthorizationError | None] = {}

    @fetched_once
    def clients(self) -> ClusterClients:
        """Connect to the cluster. Raises UserError where that fails."""
        clients = connect_clients(self.config, _CONNECT_WAIT_S)
        admin = clients.create_admin(_CONNECT_WAIT_S)
        clients.partition_counts = admin.fetch_partition_counts_at_start(_CONNECT_WAIT_S)
        return clients

    @fetched_once
    def admin(self) -> Admin:
        """Return a client for topics and offsets, whose answers are waited for shortly."""
        return self.clients().create_admin(REQUEST_WAIT_S)

    @fetched_once
    def cluster_admin(self) -> ClusterAdmin:
        return self.clients().cluster_admin

    @fetched_once
    def description(self) -> ClusterDescription:
        """Fetch the brokers, and the partitions of all topics."""
        return self.cluster_admin().describe_cluster()

    @fetched_once
    def probes(self) -> Sequence[BrokerProbe]:
        """Connect to each broker, and measure how soon it answers."""
        clients = self.clients()
        return probe_brokers(
            sorted(self.description().brokers.values()), clients.security, REQUEST_WAIT_S
        )

    @fetched_once
    def broker_settings(self) -> Mapping[int, Mapping[str, str]]:
        """Fetch the settings in force of each broker that answers. Raises if none does."""
        found: dict[int, Mapping[str, str]] = {}
        failure: Exception | None = None
        for broker in sorted(self.description().brokers):
            try:
                found[broker] = self.cluster_admin().fetch_broker_settings(broker)
            except Exception as error:
                failure = failure or error
        if not found and failure is not None:
            raise failure
        return found

    @fetched_once
    def groups(self) -> Sequence[GroupListing]:
        """List all groups that this user may describe."""
        return self.clients().list_groups()

    @fetched_once
    def transactions(self) -> TransactionFacts:
        """Describe the open transactions of all coordinators."""
        clients = self.clients()
        found: list[DescribedTransactionState] = []
        undescribed: list[str] = []
        for address in clients.ask_brokers(transactions.list_brokers):
            with closing(clients.open_connection(address)) as broker:
                listed = _list_open_transactional_ids(clients, broker)
                if listed:
                    found += transactions.describe_transactions(
                        broker, listed, lambda each, error: undescribed.append(f"{each} ({error})")
                    )
        return TransactionFacts(found, undescribed, self._find_transactional_id_listing_gap())

    def fetch_producer_epochs(
        self, application_id: str
    ) -> dict[str, tuple[ProducerId, ProducerEpoch]]:
        """Fetch anew the id and epoch of the producer of each transactional id of workers."""
        clients = self.clients()
        found: dict[str, tuple[int, int]] = {}
        for address in clients.ask_brokers(transactions.list_brokers):
            with closing(clients.open_connection(address)) as broker:
                ids = [
                    each
                    for each in transactions.list_transactional_ids(broker)
                    if is_own_transactional_id(each, application_id)
                ]
                if ids:
                    found |= {
                        each.transactional_id: (each.producer_id, each.producer_epoch)
                        for each in transactions.describe_transactions(broker, ids)
                    }
        return found

    def _find_transactional_id_listing_gap(self) -> str | None:
        """Return why transactional ids may be missing from the lists, None where all are listed.

        To ask for a coordinator lets Kafka create its topic, so without it none is asked for.
        """
        if TRANSACTIONS_TOPIC not in self.description().topics:
            return f"{TRANSACTIONS_TOPIC} is not there, or this user may not describe it"
        return self.clients().ask_brokers(transactions.explain_incomplete_listing)

    def list_open_producers(self, partitions: Sequence[Partition]) -> Sequence[OpenProducer]:
        """Return the producers with an open transaction in these partitions, by their logs."""
        return self.clients().ask_brokers(
            lambda open_connection: transactions.list_open_producers(open_connection, partitions)
        )

    def topic_settings(self, topics: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the settings in force of topics that exist, each fetched once."""
        if missing := sorted(set(topics) - self._topic_settings.keys()):
            self._topic_settings |= self.admin().fetch_topic_settings(missing)
        return {topic: self._topic_settings[topic] for topic in topics}

    def refuse_hidden_topics(self, topics: Collection[str]) -> None:
        """Raise AuthorizationError for the first of these topics that this user may not describe.

        Brokers leave such a topic out of their lists, as they do one that does not exist.
        """
        for topic in sorted(set(topics) - self.description().topics.keys()):
            if topic not in self._refusals:
                self._refusals[topic] = self._find_authorization_error(topic)
            if (refusal := self._refusals[topic]) is not None:
                raise refusal

    def _find_authorization_error(self, topic: str) -> AuthorizationError | None:
        """Return the error of a topic that may not be described, None for one that may."""
        try:
            self.admin().check_topic_rights({topic: ["Describe"]})
        except AuthorizationError as error:
            return error
        return None

    @property
    def now_ms(self) -> int:
        return int(time.time() * 1_000)


def _list_open_transactional_ids(clients: ClusterClients, broker: BrokerConnection) -> list[str]:
    """Return the ids of the open transactions that a broker coordinates, once it has loaded."""
    return clients.ask_brokers(
        lambda _: list(transactions.list_transactional_ids(broker, transactions.OPEN_STATES))
    )
