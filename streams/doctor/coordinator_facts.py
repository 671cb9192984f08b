"""Measure how soon coordinators answer, and scrape the embedded broker's figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from streams.commands.cluster_clients import ClusterClients
from streams.commands.metrics_command import fetch_scrape
from streams.common.topic_partitions import Partition
from streams.doctor.coordinators import CoordinatorTimes
from streams.membership.connection import BrokerConnection, find_coordinator
from streams.membership.group_offsets import fetch_offsets
from streams.membership.transactions import describe_transactions
from streams.monitoring.scraped_figures import Scrape
from streams.processes.broker_start import METRICS_PORT_FILE
from streams.processes.embedded import broker_directory
from streams.settings.config import EMBEDDED, StreamsConfig

_ROUNDS = 3
_KEY_IS_TRANSACTIONAL_ID = 1
_DESCRIBE_TRANSACTIONS = 65


def measure_coordinators(
    clients: ClusterClients, group_id: str, partition: Partition, transactional_id: str | None
) -> CoordinatorTimes:
    """Measure the shortest of several answers of the coordinators of a group and of an id.

    The requests go through the coordinators' queues as commits do, and change nothing. Without a
    `transactional_id` only the group's is asked.
    """
    with closing(_connect_to_coordinator(clients, group_id, 0)) as connection:
        times = {
            "group": _measure_shortest_s(lambda: _ask_for_offset(connection, group_id, partition))
        }
    if transactional_id is None:
        return CoordinatorTimes(times)
    of_id = _connect_to_coordinator(clients, transactional_id, _KEY_IS_TRANSACTIONAL_ID)
    with closing(of_id):
        if _DESCRIBE_TRANSACTIONS in of_id.api_versions:
            times["transaction"] = _measure_shortest_s(
                lambda: list(describe_transactions(of_id, [transactional_id]))
            )
    return CoordinatorTimes(times)


def _connect_to_coordinator(clients: ClusterClients, key: str, key_type: int) -> BrokerConnection:
    with closing(clients.open_connection(None)) as bootstrap:
        address = find_coordinator(bootstrap, key, key_type=key_type)
    return clients.open_connection(address)


def _ask_for_offset(connection: BrokerConnection, group_id: str, partition: Partition) -> None:
    fetch_offsets(connection, group_id, [partition], require_stable=False)


def _measure_shortest_s(ask: Callable[[], object]) -> float:
    """Return the shortest of several answers, in seconds."""
    times = []
    for _ in range(_ROUNDS):
        began_s = time.monotonic()
        ask()
        times.append(time.monotonic() - began_s)
    return min(times)


def scrape_embedded_broker(config: StreamsConfig) -> Scrape | None:
    """Return the figures of the embedded broker; None where there is none or it has no port.

    Raises: OSError where it does not answer.
    """
    if config.bootstrap_servers != EMBEDDED:
        return None
    port = config.broker_metrics_port
    if port is None:
        try:
            port = int((broker_directory(config.state_dir) / METRICS_PORT_FILE).read_text())
        except (OSError, ValueError):
            return None
    return fetch_scrape(f"127.0.0.1:{port}")
