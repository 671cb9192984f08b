"""Connect to each broker, and measure what a client meets there: name, latency, throttling, clock.

Only a KRaft cluster tells its clock: the controller says when it was itself last caught up with the
metadata log, which is always now (DescribeQuorum, KIP-836).
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from streams.common.addresses import Address
from streams.connection.security import ConnectionSecurity
from streams.doctor.latencies import time_requests
from streams.doctor.side_by_side import call_side_by_side
from streams.errors import UserError
from streams.membership.connection import (
    BrokerConnection,
    ConnectionLost,
    OpenConnection,
    build_entity,
    load_request_classes,
)

_METADATA_API_KEY, _DESCRIBE_QUORUM_API_KEY = 3, 55
_METADATA_LOG = "__cluster_metadata"
_PROBES_MAX = 16


@dataclass(frozen=True, slots=True)
class BrokerProbe:
    """Holds what one broker answered, in seconds; `failure` says why it gave no answer.

    `latency_s` is the second longest of several requests. `throttle_s` is how long the broker
    makes this user wait, by its quotas.
    """

    address: Address
    failure: str = ""
    is_unresolved: bool = False
    connect_s: float = 0.0
    latency_s: float = 0.0
    throttle_s: float = 0.0
    api_versions: Mapping[int, int] = field(default_factory=dict)


def probe_brokers(
    addresses: Sequence[Address], security: ConnectionSecurity, timeout_s: float
) -> list[BrokerProbe]:
    """Probe all brokers at the same time."""
    probe = partial(_probe_broker, security=security, timeout_s=timeout_s)
    return list(call_side_by_side(probe, addresses, _PROBES_MAX))


def _probe_broker(address: Address, security: ConnectionSecurity, timeout_s: float) -> BrokerProbe:
    try:
        socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except OSError as error:
        return BrokerProbe(address, f"its name can't be resolved: {error}", is_unresolved=True)
    began_s = time.monotonic()
    try:
        lock = threading.Lock()
        connection = BrokerConnection(address, "millrace", timeout_s, lock, security)
        connect_s = time.monotonic() - began_s
        with closing(connection):
            throttles: list[timedelta] = []
            (latency_s,) = time_requests(
                lambda: throttles.append(_request_broker_list(connection).throttle_time)
            )
            return BrokerProbe(
                address,
                connect_s=connect_s,
                latency_s=latency_s,
                throttle_s=max(throttles) / timedelta(seconds=1),
                api_versions=connection.api_versions,
            )
    except (ConnectionLost, UserError, OSError) as error:
        return BrokerProbe(address, str(error))


def _request_broker_list(connection: BrokerConnection) -> Any:
    """Send the cheapest request that every user may send: Metadata of no topic."""
    classes = load_request_classes(connection, _METADATA_API_KEY, 9)
    return connection.send_request(
        build_entity(
            classes["MetadataRequest"],
            topics=(),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
    )


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """Holds by how many seconds the controller's clock is ahead of this machine's."""

    ahead_s: float
    error_s: float


def measure_clock_skew(open_connection: OpenConnection) -> ClockSkew | None:
    """Compare the controller's clock with this machine's; None where no controller tells it.

    Raises: ConnectionLost, as where the broker does not have the request.
    """
    with closing(open_connection(None)) as connection:
        if connection.negotiate_version(_DESCRIBE_QUORUM_API_KEY, 2) < 1:
            return None
        classes = load_request_classes(connection, _DESCRIBE_QUORUM_API_KEY, 2)
        partition = build_entity(classes["PartitionData"], partition_index=0)
        topic = build_entity(
            classes["TopicData"], topic_name=_METADATA_LOG, partitions=(partition,)
        )
        before_s = time.time()
        answer = connection.send_request(
            build_entity(classes["DescribeQuorumRequest"], topics=(topic,))
        )
        after_s = time.time()
    for each in (part for found in answer.topics for part in found.partitions):
        for voter in each.current_voters:
            told_ms = int(voter.last_caught_up_timestamp)
            if voter.replica_id == each.leader_id and told_ms > 0:
                middle_s = (before_s + after_s) / 2
                return ClockSkew(told_ms / 1_000 - middle_s, (after_s - before_s) / 2)
    return None
