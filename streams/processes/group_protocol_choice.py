"""Choose the protocol by which an application joins its group, and refuse what brokers lack.

    group_protocol   the group            the brokers             what is chosen
    classic          any                  any                     classic
    streams          any                  have streams groups     streams
    streams          any                  don't                   nothing: ConfigError
    auto             has members          any                     the protocol of the members
    auto             has none, or there   have streams groups     streams
                     is none
    auto             the same             don't, or are of 4.2    classic

An application that reads topics by a pattern can't be described to brokers: for it they don't.

A live group keeps its protocol, so that a worker that is started beside others joins them.
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import NamedTuple

from streams.command_lines import format_command
from streams.errors import BrokerUnavailable, ConfigError, StreamsError
from streams.membership.connection import BrokerConnection, ConnectionLost, OpenConnection
from streams.membership.streams.group_session import (
    SESSION_SETTING,
    STREAMS_SESSION_MS,
    fetch_group_session_or_own_ms,
    fetch_group_setting,
)
from streams.membership.streams.support import (
    explain_broken_migration,
    explain_missing_streams_groups,
    find_live_protocol,
)
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology

log = logging.getLogger(__name__)

_NO_PATTERNS = (
    "is read, and Kafka up to 4.4 refuses a streams group whose topology has an expression "
    "(STREAMS_INVALID_TOPOLOGY)"
)

STANDBY_SETTING = "streams.num.standby.replicas"
_GROUP_SETTINGS = {
    "num_standby_replicas": STANDBY_SETTING,
    "session_timeout_ms": SESSION_SETTING,
}
"""Settings that the group has on the broker instead, with Kafka's names."""
_WITHOUT_COUNTERPART = (
    "max_warmup_replicas",
    "acceptable_recovery_lag",
    "probing_rebalance_interval_ms",
    "rack_aware_assignment_tags",
    "rack_aware_assignment_strategy",
)


def choose_group_protocol(
    config: StreamsConfig, topology: Topology, open_connection: OpenConnection
) -> StreamsConfig:
    """Return the settings with `classic` or `streams` as the group's protocol.

    With `streams` the session time-out is the group's own, which the brokers have, and 45 s at
    most.

    Raises ConfigError if the brokers don't serve it, or not the topology, BrokerUnavailable if none
    answers; AuthorizationError.
    """
    group_id = topology.application_id
    if config.group_protocol == "classic":
        return config
    try:
        chosen = find_group_protocol(config, topology, open_connection)
        if chosen.warning:
            log.warning("group_protocol='streams': %s", chosen.warning)
        if config.group_protocol == "auto":
            log.info("group_protocol='auto': %s, since %s", chosen.protocol, chosen.reason)
        if chosen.protocol == "classic":
            return config.model_copy(update={"group_protocol": chosen.protocol})
        with closing(open_connection(None)) as connection:
            session_ms = fetch_group_session_or_own_ms(
                connection, group_id, config.session_timeout_ms
            )
            matches_standby_count = _matches_group_standby_count(connection, config, group_id)
    except ConnectionLost as error:
        raise BrokerUnavailable(
            f"group_protocol={config.group_protocol!r} can't be checked: {error}"
        ) from error
    _warn_of_unused_settings(config, group_id, session_ms, matches_standby_count)
    # A group that has a longer session may get Kafka's default again at any time.
    bound_ms = min(session_ms, STREAMS_SESSION_MS)
    return config.model_copy(
        update={"group_protocol": chosen.protocol, "session_timeout_ms": bound_ms}
    )


class ChosenProtocol(NamedTuple):
    """Says by which protocol a start would join now, why, and what may go wrong with it."""

    protocol: str
    reason: str = ""
    warning: str = ""


def find_group_protocol(
    config: StreamsConfig, topology: Topology, open_connection: OpenConnection
) -> ChosenProtocol:
    """Return the protocol by which a start would join the group now, and change nothing.

    Raises ConfigError if a start would be refused, ConnectionLost where brokers don't answer;
    AuthorizationError, StreamsError for another refusal of theirs.
    """
    if config.group_protocol == "classic":
        return ChosenProtocol("classic")
    with closing(open_connection(None)) as connection:
        missing = explain_missing_streams_groups(connection)
        broken = explain_broken_migration(connection)
    if topology.patterns:
        missing = missing or f"{topology.patterns[0]!r} {_NO_PATTERNS}"
    if config.group_protocol == "streams":
        if missing:
            raise ConfigError(
                f"group_protocol='streams' is not possible here: {missing}. Set "
                "group_protocol='classic', or 'auto', or change the brokers"
            )
        return ChosenProtocol("streams", warning=broken)
    needs_classic = config.task_assignor and "task_assignor is called by a worker"
    obstacle = needs_classic or missing or broken
    chosen = _choose_by_group(topology.application_id, open_connection, obstacle)
    if chosen.protocol == "streams" and needs_classic:
        raise ConfigError(
            f"task_assignor is not possible here: {chosen.reason}, in which the broker assigns "
            "tasks. End these members before, or leave task_assignor out"
        )
    return chosen


def _choose_by_group(
    group_id: str, open_connection: OpenConnection, obstacle: str
) -> ChosenProtocol:
    """Return the protocol for a group, and why; `obstacle` is why a new one can't be `streams`."""
    live = find_live_protocol(open_connection, group_id)
    if live:
        return ChosenProtocol(live, f"members of group {group_id!r} speak it")
    if obstacle:
        return ChosenProtocol("classic", obstacle)
    reason = f"group {group_id!r} has no members, and the brokers serve streams groups"
    return ChosenProtocol("streams", reason)


def _matches_group_standby_count(
    connection: BrokerConnection, config: StreamsConfig, group_id: str
) -> bool:
    """Return whether the group is known to have as many standby tasks as the worker's setting."""
    if (
        config.num_standby_replicas
        == type(config).model_fields["num_standby_replicas"].get_default()
    ):
        return False  # it is not warned of
    try:
        found = fetch_group_setting(connection, group_id, STANDBY_SETTING)
    except StreamsError:  # such as a missing right, of which the session's warning tells
        return False
    return found == str(config.num_standby_replicas)


def _warn_of_unused_settings(
    config: StreamsConfig, group_id: str, session_ms: int, matches_standby_count: bool
) -> None:
    """Warn of settings that differ from their defaults, and that the broker decides instead.

    Those that the group has as well need no warning.
    """
    fields = type(config).model_fields
    changed = {
        name
        for name in (*_GROUP_SETTINGS, *_WITHOUT_COUNTERPART)
        if getattr(config, name) != fields[name].get_default()
    }
    if config.session_timeout_ms == session_ms:
        changed.discard("session_timeout_ms")
    if matches_standby_count:
        changed.discard("num_standby_replicas")
    given = [
        f"{setting}={getattr(config, name)}"
        for name, setting in _GROUP_SETTINGS.items()
        if name in changed
    ]
    if given:
        command = format_command("group configure", group_id, *given)
        log.warning(
            "with group_protocol='streams' %s of this worker %s not used: the group has it on the "
            "broker, set it there: %s",
            " and ".join(sorted(changed & _GROUP_SETTINGS.keys())),
            "is" if len(given) == 1 else "are",
            command,
        )
    if unused := sorted(changed.intersection(_WITHOUT_COUNTERPART)):
        log.warning(
            "with group_protocol='streams' the broker assigns tasks, and has no use for %s",
            ", ".join(unused),
        )
