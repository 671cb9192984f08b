"""Find the brokers of an application, and the one set of settings by which Spark reaches them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from streams.processes.embedded import find_or_start_bootstrap_servers
from streams.spark.source.broker_access import BrokerAccess, create_access

if TYPE_CHECKING:
    from streams.settings.config import StreamsConfig


def resolve_access(
    config: StreamsConfig,
    *,
    bootstrap_servers: str | None = None,
    kafka: Mapping[str, str] | None = None,
) -> BrokerAccess:
    """Return the access to an application's brokers; start the embedded broker if it is that one.

    `bootstrap_servers`, `kafka` (settings of librdkafka) override those of the application; those
    of its consumers are not taken. Raises ConfigError.
    """
    servers = (
        find_or_start_bootstrap_servers(config) if bootstrap_servers is None else bootstrap_servers
    )
    return create_access(servers, kafka or {}, config.connection)
