"""Find the brokers that can log requests, which says what no answer of theirs does.

Those of Kafka have a logger for it, whose level can be changed while they run (KIP-412). Others,
such as Millrace's, need not have it.
"""

from __future__ import annotations

from contextlib import closing, suppress

from streams.doctor.cluster_facts import ClusterFacts
from streams.errors import UserError
from streams.membership.connection import ConnectionLost
from streams.membership.described_configs import ConfigKind, fetch_setting

REQUEST_LOGGER = "kafka.request.logger"


def find_brokers_with_request_logger(facts: ClusterFacts) -> list[int]:
    """Return the brokers that have the logger, of those that answer and let this user ask."""
    found = []
    clients = facts.clients()
    for broker, address in sorted(facts.description().brokers.items()):
        with suppress(UserError, ConnectionLost), closing(clients.open_connection(address)) as to:
            if fetch_setting(to, ConfigKind.BROKER_LOGGER, str(broker), REQUEST_LOGGER) is not None:
                found.append(broker)
    return found
