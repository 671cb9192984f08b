"""Know whether the coordinators that a worker needs answer, while other brokers do.

A group has one coordinator, and so has each transactional id. With the broker that is theirs they
may be away for long, such as where `__transaction_state` has no replicas: then whoever needs them
goes on by itself later, as after an outage of all brokers, and no restart would help. Nobody asks
while all goes well. What has failed for its whole time-out asks before that ends anything.

    a coordinator is away    one warning for an incident; another one each minute, with the seconds
    all of them answer       nothing: what has failed either goes on now, or another cause ends it
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import NamedTuple, TypeAlias

from streams.common.addresses import Address
from streams.common.host import Host
from streams.errors import AuthorizationError
from streams.membership.connection import ConnectionLost, OpenConnection, find_coordinator

AllAnswer: TypeAlias = bool

log = logging.getLogger(__name__)

_LOG_INTERVAL_S = 60.0
_ASK_INTERVAL_S = 1.0
_KEY_IS_GROUP, _KEY_IS_TRANSACTIONAL_ID = 0, 1


class _CoordinatorKey(NamedTuple):
    """Names a coordinator as FindCoordinator does: by a group, or by a transactional id."""

    key: str
    key_type: int

    def describe_owner(self) -> str:
        """Return whose coordinator it is, for a message."""
        kind = "group" if self.key_type == _KEY_IS_GROUP else "transactional id"
        return f"{kind} {self.key!r}"


class CoordinatorOutage:
    """Asks the coordinators that a worker needs whether they answer, and tells of those that don't.

    `group_id` is the worker's group; empty for none. Several threads may use it.
    """

    def __init__(self, group_id: str, host: Host, open_connection: OpenConnection) -> None:
        self._host = host
        self._open_connection = open_connection
        self._lock = host.create_lock()
        self._needed = {_CoordinatorKey(group_id, _KEY_IS_GROUP)} if group_id else set()
        self._asked_at_s = self._away_at_s = float("-inf")
        self._since_s = self._log_at_s = 0.0
        self._is_away = False

    def add_transactional_id(self, transactional_id: str) -> None:
        """Note that the worker needs the coordinator of a transactional id."""
        self._needed.add(_CoordinatorKey(transactional_id, _KEY_IS_TRANSACTIONAL_ID))

    def probe_coordinators(self, failing_since_s: float) -> AllAnswer:
        """Ask each coordinator, at most once a second, and return whether all of them answer.

        `failing_since_s` is the monotonic time since when something fails that needs them. Raises
        AuthenticationError where the broker refuses the security.
        """
        with self._lock:
            now_s = self._host.monotonic_s()
            if now_s < self._asked_at_s + _ASK_INTERVAL_S:
                return not self._is_away
            reason = self._find_silent_coordinator()
            self._asked_at_s = self._host.monotonic_s()
            self._is_away = bool(reason)
            if reason:
                self._log_away(reason, failing_since_s)
            return not reason

    def was_away_since(self, since_s: float) -> bool:
        """Return whether a coordinator has been found away since a monotonic time in s."""
        return self._away_at_s >= since_s

    def _find_silent_coordinator(self) -> str:
        """Return which coordinator does not answer, and why; empty if all do, as far as known."""
        tried: set[Address] = set()
        try:
            with closing(self._open_connection(None)) as bootstrap:
                for each in sorted(self._needed):
                    try:
                        address = find_coordinator(bootstrap, each.key, key_type=each.key_type)
                        if address not in tried:
                            self._open_connection(address).close()
                    except ConnectionLost as lost:
                        return f"the coordinator of {each.describe_owner()} does not answer: {lost}"
                    except AuthorizationError:
                        continue  # whoever needs it is told so
                    tried.add(address)
        except ConnectionLost:
            pass  # it is an outage of all brokers, which others know of
        return ""

    def _log_away(self, reason: str, failing_since_s: float) -> None:
        """Log that a coordinator is away: at once in each incident, and then each minute."""
        now_s = self._asked_at_s
        is_new = failing_since_s > self._away_at_s
        self._away_at_s = now_s
        if is_new:
            self._since_s = failing_since_s
        elif now_s < self._log_at_s:
            return
        self._log_at_s = now_s + _LOG_INTERVAL_S
        if is_new:
            log.warning(
                "%s. Other brokers answer. Nothing is lost, and what needs it goes on when it does",
                reason,
            )
        else:
            log.warning("for %.0f s, %s", now_s - self._since_s, reason)
