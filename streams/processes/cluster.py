"""Find the cluster of an application, and check the connection to it before any client is made."""

from __future__ import annotations

from dataclasses import dataclass

from streams.command_lines import note_invocation
from streams.connection.current import CurrentSecurity
from streams.connection.security import prepare_security
from streams.membership.connection_check import CHECK_TIMEOUT_S, check_connection
from streams.processes.embedded import find_embedded_broker_data, find_or_start_bootstrap_servers
from streams.processes.release_check import check_broker_release
from streams.runtime.clients import refuse_gssapi
from streams.settings.config import EMBEDDED, StreamsConfig


@dataclass(frozen=True, slots=True)
class Cluster:
    """Holds the addresses and the security with which clients reach the brokers."""

    bootstrap_servers: str
    security: CurrentSecurity


def find_or_start_cluster(
    config: StreamsConfig, check_timeout_s: float = CHECK_TIMEOUT_S
) -> Cluster:
    """Find the cluster of the settings, and start the embedded broker if it is that one.

    The check of the connection takes `check_timeout_s` at most; that no broker answers is no error.
    Raises ConfigError for settings that can't be used, here or with brokers of their release,
    AuthenticationError if a broker refuses the credentials or isn't trusted.
    """
    refuse_gssapi(config.connection)
    servers = find_or_start_bootstrap_servers(config)
    note_invocation(
        servers=servers,
        is_secured=bool(config.connection),
        broker_data=find_embedded_broker_data(config.state_dir, servers),
    )
    cluster = Cluster(servers, CurrentSecurity(prepare_security(config.connection)))
    if config.bootstrap_servers != EMBEDDED:
        api_versions = check_connection(servers, cluster.security.value, check_timeout_s)
        if api_versions:
            check_broker_release(config, api_versions)
    return cluster
