"""Know whether any broker answers, tell of an outage in few lines, and let no deadline run in it.

Theory of operation. All of a worker's own connections are opened through one `BrokerOutage`. Each
heartbeat, join or look-up that finds no bootstrap server begins the outage, and the next connection
that one answers ends it. Who waits for the end asks once a second (`probe_if_due`).

    no broker answers     one warning; another one each minute, with the seconds
    one answers again     one warning

What may not go on for ever while brokers answer, such as a task that can't commit, may go on while
none does, or while a coordinator or the leader of a partition is away that the worker needs:
`is_overdue` measures from when the clients have connected again after the last outage, and asks
before it says yes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import suppress

from streams.common.addresses import Address
from streams.common.host import Host
from streams.membership.connection import BrokerConnection, ConnectionLost, OpenConnection
from streams.membership.coordinator_outage import CoordinatorOutage
from streams.membership.leader_outage import LeaderOutage

log = logging.getLogger(__name__)

IsOverdue = Callable[[float, float], bool]
"""Returns whether something that began at a monotonic time in s has lasted for more than so many s,
during which brokers answered."""
_LOG_INTERVAL_S = 60.0
_ASK_INTERVAL_S = 1.0
_RECONNECT_S = 10.0
"""The seconds after an outage until each client of librdkafka has tried to connect again, also with
librdkafka's own `reconnect.backoff.max.ms`, which a user may set."""


def create_overdue_check(host: Host) -> IsOverdue:
    """Create an `IsOverdue` that counts all time since the start, outages included."""
    return lambda since_s, limit_s: host.monotonic_s() - since_s > limit_s


class BrokerOutage:
    """Opens the connections of a worker, and knows from them whether any broker answers.

    `open_connection` opens them; `servers` is for messages. `is_stopping` tells whether the worker
    stops: then nobody has to know. `group_id` is the group whose coordinator the worker needs, and
    `topics` are those whose leaders it needs.
    """

    def __init__(
        self,
        servers: str,
        host: Host,
        open_connection: OpenConnection,
        is_stopping: Callable[[], bool] = lambda: False,
        *,
        give_up_after_s: float = 30.0,
        group_id: str = "",
        topics: Collection[str] = (),
    ) -> None:
        self._servers = servers
        self._host = host
        self._open_connection = open_connection
        self._is_stopping = is_stopping
        self.give_up_after_s = give_up_after_s
        """For how long no broker may answer until what is uncommitted is given up."""
        self.coordinators = CoordinatorOutage(group_id, host, self.open_connection)
        """Knows whether the coordinators answer that the worker needs."""
        self.leaders = LeaderOutage(topics, host, self.open_connection)
        """Knows whether the partitions have leaders that the worker needs."""
        self._lock = host.create_lock()
        self.since_s: float | None = None
        """The monotonic time since when no broker answers; None if one does, as far as known."""
        self.reason = ""
        """Why the last attempt to connect failed; empty if it did not."""
        self._ended_at_s = float("-inf")
        self._log_at_s = self._ask_at_s = 0.0

    @property
    def is_on(self) -> bool:
        """Return whether no broker answers, as far as known."""
        return self.since_s is not None

    def measure_duration_s(self) -> float:
        """Return for how many seconds no broker has answered; 0 if one does."""
        since_s = self.since_s
        return 0.0 if since_s is None else self._host.monotonic_s() - since_s

    def describe_outage(self) -> str:
        """Format the sentence that no broker answers, for how many seconds, and why."""
        duration_s = self.measure_duration_s()
        return f"no broker answers at {self._servers}, for {duration_s:.0f} s: {self.reason}"

    def describe_any_outage(self) -> str:
        """Describe the outage of all brokers, or of partition leaders; empty without one."""
        if self.is_on:
            return self.describe_outage()
        return self.leaders.describe_outage() if self.leaders.is_on else ""

    def describe_cause(self) -> str:
        """Format the sentence that no broker answers, and why, without the duration so far."""
        return f"no broker answers at {self._servers}: {self.reason}"

    def open_connection(self, address: Address | None) -> BrokerConnection:
        """Connect to `address`, or to any bootstrap server if it is None, and note whether it did.

        One broker of several that does not answer is no outage. Raises what the connection raises.
        """
        try:
            opened = self._open_connection(address)
        except ConnectionLost as lost:
            if address is None and not self._is_stopping():
                self._log_lost_broker(lost)
            raise
        self._log_answering_broker()
        return opened

    def try_reach_any_broker(self) -> bool:
        """Connect to any bootstrap server now, and return whether one answers."""
        self._ask_at_s = self._host.monotonic_s() + _ASK_INTERVAL_S
        with suppress(ConnectionLost):
            self.open_connection(None).close()
            return True
        return False

    def probe_if_due(self) -> None:
        """Ask a broker whether the outage is over, at most once a second."""
        if self._host.monotonic_s() >= self._ask_at_s:
            self.try_reach_any_broker()

    def is_overdue(self, since_s: float, limit_s: float) -> bool:
        """Return whether what began at `since_s` has lasted for `limit_s` while brokers answered.

        Asks a broker first, and the worker's coordinators and leaders: they may just have gone,
        unknown to anybody. One of them that is away is waited for as all brokers are.
        """
        began_s = max(since_s, self._ended_at_s)
        if self.is_on or self._host.monotonic_s() - began_s <= limit_s:
            return False
        if not self.try_reach_any_broker():
            return False
        was_away = self.coordinators.was_away_since(began_s) or self.leaders.was_away_since(began_s)
        is_answered = self.coordinators.probe_coordinators(since_s)
        is_answered = self.leaders.probe_leaders(since_s) and is_answered
        if is_answered and was_away:
            self._ended_at_s = self._host.monotonic_s() + _RECONNECT_S
            return False
        return is_answered

    def _log_lost_broker(self, error: Exception) -> None:
        """Log that no broker answers: at once, and then each minute."""
        with self._lock:
            self.reason = str(error)
            now_s = self._host.monotonic_s()
            is_new = self.since_s is None
            if is_new:
                self.since_s = now_s
            elif now_s < self._log_at_s:
                log.debug("no broker answers: %s", error)
                return
            self._log_at_s = now_s + _LOG_INTERVAL_S
        if is_new:
            log.warning(
                "no broker answers at %s (%s): nothing is lost, and processing goes on when one "
                "does",
                self._servers,
                error,
            )
        else:
            log.warning("still %s", self.describe_outage())

    def _log_answering_broker(self) -> None:
        """Log that a broker answers, if none did before."""
        if self.since_s is None:
            return
        with self._lock:
            since_s, self.since_s = self.since_s, None
            self.reason = ""
            now_s = self._host.monotonic_s()
            self._ended_at_s = now_s + _RECONNECT_S
        if since_s is not None:
            log.warning(
                "a broker answers again at %s, %.0f s after it was noticed that none did",
                self._servers,
                now_s - since_s,
            )
