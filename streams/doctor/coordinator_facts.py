"""Measure how soon coordinators answer, and scrape the embedded broker's figures."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing

from streams.commands.cluster_clients import ClusterClients
from streams.commands.metric_scrapes import fetch_scrape
from streams.common.topic_partitions import Partition
from streams.doctor.coordinators import CoordinatorTimes
from streams.doctor.latencies import time_requests
from streams.membership.connection import BrokerConnection, find_coordinator
from streams.membership.group_offsets import fetch_offsets
from streams.membership.transactions import describe_transactions
from streams.monitoring.scraped_figures import Scrape
from streams.processes.broker_start import METRICS_PORT_FILE
from streams.processes.embedded import build_broker_path
from streams.settings.config import EMBEDDED, StreamsConfig

_KEY_IS_TRANSACTIONAL_ID = 1
_DESCRIBE_TRANSACTIONS = 65


def measure_coordinator_answer_times(
    clients: ClusterClients, group_id: str, partition: Partition, transactional_id: str | None
) -> CoordinatorTimes:
    """Measure how soon the coordinators of a group and of an id answer.

    The requests go through the coordinators' queues as commits do, and change nothing. Without a
    `transactional_id` only the group's is asked.
    """
    with ExitStack() as connections:
        of_group = connections.enter_context(closing(_connect_to_coordinator(clients, group_id, 0)))
        requests: dict[str, Callable[[], object]] = {
            "group": lambda: _request_committed_offset(of_group, group_id, partition)
        }
        if transactional_id is not None:
            of_id = connections.enter_context(
                closing(
                    _connect_to_coordinator(clients, transactional_id, _KEY_IS_TRANSACTIONAL_ID)
                )
            )
            if _DESCRIBE_TRANSACTIONS in of_id.api_versions:
                requests["transaction"] = lambda: list(
                    describe_transactions(of_id, [transactional_id])
                )
        return CoordinatorTimes(dict(zip(requests, time_requests(*requests.values()), strict=True)))


def _connect_to_coordinator(clients: ClusterClients, key: str, key_type: int) -> BrokerConnection:
    with closing(clients.open_connection(None)) as bootstrap:
        address = find_coordinator(bootstrap, key, key_type=key_type)
    return clients.open_connection(address)


def _request_committed_offset(
    connection: BrokerConnection, group_id: str, partition: Partition
) -> None:
    fetch_offsets(connection, group_id, [partition], require_stable=False)


def scrape_embedded_broker(config: StreamsConfig) -> Scrape | None:
    """Return the figures of the embedded broker; None where there is none or it has no port.

    Raises: OSError where it does not answer.
    """
    if config.bootstrap_servers != EMBEDDED:
        return None
    port = config.broker_metrics_port
    if port is None:
        try:
            port = int((build_broker_path(config.state_dir) / METRICS_PORT_FILE).read_text())
        except (OSError, ValueError):
            return None
    return fetch_scrape(f"127.0.0.1:{port}")
