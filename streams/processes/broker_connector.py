"""Open a worker's own connections to its brokers; restart an embedded broker that is gone.

Each group member connects within a heartbeat interval, so that an embedded broker is away for some
seconds at most. Only a refused connection means that the broker is gone: one that hangs is left
alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from streams.common.host import Event, Host
from streams.connection.security import ConnectionSecurity
from streams.errors import AuthenticationError, ConfigError
from streams.membership.connection import (
    BrokerConnection,
    ConnectionLost,
    connect_to_any_server,
)
from streams.processes.cluster import Cluster
from streams.processes.embedded import restart_embedded_broker
from streams.settings.config import EMBEDDED, StreamsConfig

log = logging.getLogger(__name__)

BROKER_WAIT_S = 10.0
_RESTART_INTERVAL_S = 10.0


class BrokerConnector:
    """Opens connections to a broker's address, or to any of the bootstrap servers.

    `renew_refused` is called with a security that a broker refuses, and returns whether another has
    taken its place.
    """

    def __init__(
        self,
        config: StreamsConfig,
        cluster: Cluster,
        host: Host,
        stop: Event,
        renew_refused: Callable[[ConnectionSecurity], bool] = lambda refused: False,
    ) -> None:
        self._renew_refused = renew_refused
        self._security = cluster.security
        self._servers = cluster.bootstrap_servers
        self._host = host
        self._stop = stop
        self._embedded_state_dir: Path | None = (
            config.state_dir if config.bootstrap_servers == EMBEDDED else None
        )
        self._lock = host.create_lock()
        self._next_attempt_at_s = 0.0

    def __call__(self, address: tuple[str, int] | None) -> BrokerConnection:
        """Connect to `address`, or to any bootstrap server if it is None.

        Restarts an embedded broker that refuses connections. Raises ConnectionLost.
        """
        if address is not None:
            return self._open_connection(address)
        try:
            return connect_to_any_server(self._servers, self._open_connection)
        except ConnectionLost as lost:
            is_refused = isinstance(lost.__cause__, ConnectionRefusedError)
            if not (
                is_refused
                and self._embedded_state_dir
                and self._restart_embedded_broker(self._embedded_state_dir)
            ):
                raise
        return connect_to_any_server(self._servers, self._open_connection)

    def _open_connection(self, address: tuple[str, int]) -> BrokerConnection:
        """Open a connection to one address. Raises ConnectionLost, AuthenticationError."""
        security = self._security.value
        try:
            return self._connect(address, security)
        except AuthenticationError:
            if not self._renew_refused(security):
                raise
        return self._connect(address, self._security.value)

    def _connect(self, address: tuple[str, int], security: ConnectionSecurity) -> BrokerConnection:
        """Connect to one address. Raises ConnectionLost, AuthenticationError."""
        return BrokerConnection(
            address, "millrace", BROKER_WAIT_S, self._host.create_lock(), security
        )

    def _restart_embedded_broker(self, state_dir: Path) -> bool:
        """Restart an embedded broker that is gone; return False if none can be expected to answer.

        One thread tries at a time, at most once in 10 s.
        """
        with self._lock:
            now_s = self._host.monotonic_s()
            if self._stop.is_set() or now_s < self._next_attempt_at_s:
                return False
            try:
                pid = restart_embedded_broker(state_dir, self._servers)
            except (ConfigError, OSError) as error:
                log.error("the embedded broker is gone and can't be started again: %s", error)
                return False
            finally:
                self._next_attempt_at_s = self._host.monotonic_s() + _RESTART_INTERVAL_S
            if pid is not None:
                log.warning(
                    "the embedded broker at %s was gone: started again as process %d",
                    self._servers,
                    pid,
                )
            return True
