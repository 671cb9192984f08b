"""Open a worker's own connections to its brokers; restart an embedded broker that is gone.

Each group member connects within a heartbeat interval, so that an embedded broker is away for some
seconds at most. Only a refused connection means that the broker is gone: one that hangs is left
alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from pathlib import Path

from streams.common.addresses import Address
from streams.common.host import Event, Host
from streams.connection.current import FileChange
from streams.connection.security import ConnectionSecurity
from streams.errors import AuthenticationError, ConfigError
from streams.membership.broker_outage import BrokerOutage
from streams.membership.connection import (
    BrokerConnection,
    ConnectionLost,
)
from streams.membership.server_rotation import ServerRotation
from streams.processes import security_watch
from streams.processes.cluster import Cluster
from streams.processes.embedded import restart_embedded_broker
from streams.processes.refusal_times import RefusalTimes
from streams.settings.config import EMBEDDED, StreamsConfig

log = logging.getLogger(__name__)

BROKER_WAIT_S = 10.0
_RESTART_INTERVAL_S = 10.0


class BrokerConnector:
    """Opens connections to a broker's address, or to any of the bootstrap servers.

    `renew_refused` is called with a security that a broker refuses, and says whether another has
    taken its place. A broker that refuses for REFUSAL_HOLD_S ends whoever needs it, though others
    may let in: it may be the coordinator of the group.
    """

    def __init__(
        self,
        config: StreamsConfig,
        cluster: Cluster,
        host: Host,
        stop: Event,
        renew_refused: Callable[[ConnectionSecurity], FileChange] = lambda _: FileChange.NONE,
    ) -> None:
        self._renew_refused = renew_refused
        self._security = cluster.security
        self._refusals = RefusalTimes(host.monotonic_s)
        self._servers = cluster.bootstrap_servers
        self._rotation = ServerRotation(self._servers)
        self._host = host
        self._stop = stop
        self._embedded_state_dir: Path | None = (
            config.state_dir if config.bootstrap_servers == EMBEDDED else None
        )
        self._lock = host.create_lock()
        self._next_attempt_at_s = 0.0
        self._request_timeout_ms = config.request_timeout_ms

    def create_outage(self, group_id: str, topics: Collection[str]) -> BrokerOutage:
        """Create the BrokerOutage that learns of an outage from the connections it opens here.

        `group_id` is the group whose coordinator the worker needs, and `topics` are those whose
        leaders it needs.
        """
        return BrokerOutage(
            self._servers,
            *(self._host, self, self._stop.is_set),
            give_up_after_s=self._request_timeout_ms / 1000,
            group_id=group_id,
            topics=topics,
        )

    def __call__(self, address: Address | None) -> BrokerConnection:
        """Connect to `address`, or to any bootstrap server if it is None.

        Restarts an embedded broker that refuses connections. A stop of the worker ends the wait;
        one that stops already may still open connections, to leave its groups. Raises
        ConnectionLost, AuthenticationError.
        """
        is_given_up = (lambda: False) if self._stop.is_set() else self._stop.is_set
        if address is not None:
            return self._open_connection(address, is_given_up)
        return self._connect_or_restart_broker(is_given_up)

    def _connect_or_restart_broker(self, is_given_up: Callable[[], bool]) -> BrokerConnection:
        """Connect to any bootstrap server, after restarting an embedded broker that is gone."""
        try:
            return self._open_bootstrap_connection(is_given_up)
        except ConnectionLost as lost:
            is_refused = isinstance(lost.__cause__, ConnectionRefusedError)
            if not (
                is_refused
                and self._embedded_state_dir
                and self._try_restart_embedded_broker(self._embedded_state_dir)
            ):
                raise
        return self._open_bootstrap_connection(is_given_up)

    def _open_bootstrap_connection(self, is_given_up: Callable[[], bool]) -> BrokerConnection:
        """Connect to any bootstrap server, to another one each time where several answer."""
        return self._rotation.connect_to_next(
            lambda address: self._open_connection(address, is_given_up)
        )

    def _open_connection(
        self, address: Address, is_given_up: Callable[[], bool]
    ) -> BrokerConnection:
        """Open a connection to one address, with changed files where the present are refused.

        Raises ConnectionLost also for a refusal, until it has held for so long that the worker is
        to end: then AuthenticationError.
        """

        def connect_with(security: ConnectionSecurity) -> BrokerConnection:
            lock = self._host.create_lock()
            opened = BrokerConnection(
                address, "millrace", BROKER_WAIT_S, lock, security, is_given_up
            )
            self._refusals.forget_refusal(address)
            return opened

        security = self._security.value
        change = FileChange.NONE
        try:
            try:
                return connect_with(security)
            except AuthenticationError:
                change = self._renew_refused(security)
                if change is not FileChange.TAKEN:
                    raise
            return connect_with(self._security.value)
        except AuthenticationError as refusal:
            self._security.note_client_error()
            self._security.require_accepted()
            held_s = self._refusals.note_refusal_and_measure_s(address, self._security.version)
            if held_s >= security_watch.REFUSAL_HOLD_S and change is FileChange.NONE:
                raise
            raise ConnectionLost(str(refusal)) from refusal

    def _try_restart_embedded_broker(self, state_dir: Path) -> bool:
        """Restart an embedded broker that is gone; return False if none can be expected to answer.

        One thread tries at a time, at most once in 10 s.
        """
        with self._lock:
            now_s = self._host.monotonic_s()
            if self._stop.is_set() or now_s < self._next_attempt_at_s:
                return False
            try:
                pid = restart_embedded_broker(state_dir, self._servers, self._stop.is_set)
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
