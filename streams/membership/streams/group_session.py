"""Read after which silence a streams group gives up a member: a setting of the group on brokers.

No answer to a heartbeat tells it, and a member's own `session_timeout_ms` is not sent.
"""

from __future__ import annotations

import logging

from streams.errors import StreamsError
from streams.membership.connection import BrokerConnection
from streams.membership.described_configs import ConfigKind, fetch_setting

log = logging.getLogger(__name__)

SESSION_SETTING = "streams.session.timeout.ms"
STREAMS_SESSION_MS = 45_000
"""Kafka's default of the setting, which is also that of its lower limit."""


def fetch_group_session_or_own_ms(connection: BrokerConnection, group_id: str, own_ms: int) -> int:
    """Return the session time-out of a streams group in ms.

    Where brokers don't tell it, a worker's own setting is taken, 45 000 at most, and a warning says
    so.
    Raises: ConnectionLost where no answer comes.
    """
    try:
        group_ms = fetch_session_ms(connection, group_id)
    except StreamsError as error:
        taken_ms = min(own_ms, STREAMS_SESSION_MS)
        log.warning(
            "%s of group %r can't be read: %s. It is taken to be %d ms: if it is shorter, set "
            "session_timeout_ms of the workers to it",
            SESSION_SETTING,
            group_id,
            error,
            taken_ms,
        )
        return taken_ms
    if group_ms < STREAMS_SESSION_MS:
        log.info("%s of group %r is %d", SESSION_SETTING, group_id, group_ms)
    return group_ms


def fetch_session_ms(connection: BrokerConnection, group_id: str) -> int:
    """Return the session time-out of a group in ms; see `fetch_group_setting`."""
    return int(fetch_group_setting(connection, group_id, SESSION_SETTING))


def fetch_group_setting(connection: BrokerConnection, group_id: str, setting: str) -> str:
    """Return a setting of a group, which need not exist yet.

    Raises: ConnectionLost where no answer comes, AuthorizationError, StreamsError where the brokers
    don't tell it.
    """
    value = fetch_setting(connection, ConfigKind.GROUP, group_id, setting)
    if value is None:
        raise StreamsError("the brokers have no such setting")
    return value
