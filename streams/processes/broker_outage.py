"""Tell that no broker answers as one warning, and that one answers again as another.

Each connection of each thread meets an outage, and meets it again at each attempt. All of a
worker's own connections are opened in one place (`streams.processes.broker_connector`), and a
heartbeat opens one every few seconds while none answers: so it is told from there.
"""

from __future__ import annotations

import logging

from streams.common.host import Host

log = logging.getLogger(__name__)


class BrokerOutage:
    """Logs the beginning and the end of each outage of a worker's brokers, `servers`."""

    def __init__(self, servers: str, host: Host) -> None:
        self._servers = servers
        self._host = host
        self._lock = host.create_lock()
        self._since_s: float | None = None

    def note_lost(self, error: Exception) -> None:
        """Log that no broker answers, unless that is known."""
        with self._lock:
            if self._since_s is not None:
                log.debug("no broker answers: %s", error)
                return
            self._since_s = self._host.monotonic_s()
        log.warning(
            "no broker answers at %s (%s): nothing is lost, and processing goes on when one does",
            self._servers,
            error,
        )

    def note_answer(self) -> None:
        """Log that a broker answers, if none did before."""
        if self._since_s is None:
            return
        with self._lock:
            since_s, self._since_s = self._since_s, None
        if since_s is not None:
            log.warning(
                "a broker answers again at %s, after %.0f s",
                self._servers,
                self._host.monotonic_s() - since_s,
            )
