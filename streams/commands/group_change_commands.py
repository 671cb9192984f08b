"""Define `millrace group delete` and `millrace group configure`, which change groups on brokers.

Configurations of a group (KIP-848, KIP-1071) are kept by its name, whether there is such a group or
not, and outlive it. Which there are is the brokers' to say: their names differ between releases.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer

from streams.command_lines import format_command
from streams.command_options import (
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    StateDir,
    Yes,
)
from streams.commands.cluster_clients import ClusterClients, connect_command
from streams.commands.output import print_message, print_rows
from streams.commands.topics_command import require_confirmation
from streams.errors import AuthorizationError, ConfigError, OutcomeUnknown, StreamsError
from streams.membership.connection import ConnectionLost
from streams.membership.group_offsets import fetch_group_offsets
from streams.runtime.clients.cluster_admin import ClusterAdmin, GroupListing, GroupSetting
from streams.runtime.clients.retrying import call_with_retries

GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", help="The name of the group: its application id.")
]
_WITHOUT_MEMBERS = {"Empty", "Dead"}
SHOWN_WAIT_S = 5.0
"""The seconds that brokers may take to show a change which their controller has made."""


def delete_group(
    group: GroupArgument,
    yes: Yes = False,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Delete a group that has no members, of any protocol, with all of its committed offsets.

    Topics, local state and the group's configurations stay. An application whose group is gone
    begins where auto_offset_reset says, or is refused by the state that it has left: `group reset`
    lets one begin anew.
    """
    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        listed = _require_group(clients, group)
        if listed.state not in _WITHOUT_MEMBERS:
            raise ConfigError(
                f"the group {group!r} is {listed.state}, and only a group without members can be "
                "deleted: end all workers first; one that was killed is a member until its session "
                f"is over ({format_command('group list')} shows the states)"
            )
        offsets = clients.ask_brokers(
            lambda open_connection: fetch_group_offsets(
                open_connection, group, None, require_stable=False
            )
        ).offsets
        # Brokers leave out topics that this user may not describe; their offsets go as well.
        row = {"group": group, "protocol": listed.protocol, "visible_offsets": len(offsets)}
        require_confirmation(
            f"Delete the group {group!r} on {clients.servers} with all of its offsets, of which "
            f"this user sees {len(offsets)}?",
            yes=yes,
        )
        clients.cluster_admin.delete_group(group)
        print_rows(tuple(row), [{**row, "deleted": True}], as_json=json)


def configure_group(
    group: GroupArgument,
    assignments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE...]", help="Configurations to set."),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Give the group the brokers' value, as often as needed."),
    ] = None,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Set configurations of a group, such as streams.num.standby.replicas=1, and show all.

    They hold from the members' next heartbeats on, also for a group that does not exist yet. The
    group of an application has the name of its application id; configurations whose names begin
    with streams. are for groups of the streams protocol.
    """
    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        changes = parse_changes(assignments or (), unset or ())
        admin = clients.cluster_admin
        if changes:
            _alter_settings_or_refuse(admin, group, changes)
            settings = _read_changes_back(admin, group, changes)
        else:
            settings = admin.fetch_group_settings(group)
        if settings is not None:
            rows = list_setting_rows(settings)
            print_rows(("name", "value", "set_for_group"), rows, as_json=json)
        _note_missing_group(clients, group)


def parse_changes(assignments: Iterable[str], unset: Iterable[str]) -> dict[str, str | None]:
    """Return the configurations to change; None takes the group's own value away.

    Raises ConfigError for what is not NAME=VALUE, and for a name that is given twice.
    """
    changes: dict[str, str | None] = {}
    pairs = [(text, *text.partition("=")) for text in assignments]
    for text, name, separator, value in [*pairs, *((name, name, "=", None) for name in unset)]:
        if not name or not separator:
            raise ConfigError(f"{text!r} is not NAME=VALUE, as in streams.num.standby.replicas=1")
        if name in changes:
            raise ConfigError(f"configuration {name!r} is given twice: give one value, or --unset")
        changes[name] = value
    return changes


def _alter_settings_or_refuse(
    admin: ClusterAdmin, group: str, changes: Mapping[str, str | None]
) -> None:
    """Change configurations of a group.

    Raises ConfigError with the brokers' reason, and a name that may be meant: some that Kafka has
    are described only where they are set, so that only brokers can tell which there are not.
    """
    try:
        admin.alter_group_settings(group, changes)
    except AuthorizationError:
        raise
    except StreamsError as error:
        known: Collection[str] = ()
        with suppress(StreamsError, OutcomeUnknown):  # the brokers' reason is told without a hint
            known = admin.fetch_group_settings(group)
        hint = suggest_names(changes, known)
        raise ConfigError(f"nothing was changed, {error}{hint}") from error


class _NotShown(Exception):
    """Signals that the broker which was asked has not heard of a change; it has these settings."""

    def __init__(self, settings: Mapping[str, GroupSetting]) -> None:
        super().__init__()
        self.settings = settings


def _read_changes_back(
    admin: ClusterAdmin, group: str, changes: Mapping[str, str | None]
) -> Mapping[str, GroupSetting] | None:
    """Return all configurations of a group once they have changes that were made; None if unread.

    The controller answers a change before the brokers apply it. That one does not show it in time,
    or does not answer, is noted and no failure: the change was made.
    """

    def fetch_changed(_: float) -> Mapping[str, GroupSetting]:
        settings = admin.fetch_group_settings(group)
        if all(_is_shown_as_set(settings.get(name), value) for name, value in changes.items()):
            return settings
        raise _NotShown(settings)

    try:
        return call_with_retries(fetch_changed, SHOWN_WAIT_S, _NotShown)
    except _NotShown as late:
        print_message(
            f"{', '.join(changes)} changed, and the broker that was asked does not show it yet"
        )
        return late.settings
    except (StreamsError, OutcomeUnknown) as error:
        print_message(f"{', '.join(changes)} changed, and can't be read back: {error}")
        return None


def _is_shown_as_set(setting: GroupSetting | None, value: str | None) -> bool:
    """Return whether a configuration is as it was set; `value` None is the brokers' own.

    Brokers show numbers and truth values as they have parsed them.
    """
    if setting is None or setting.is_default:
        return value is None
    if value is None or setting.value is None:
        return False
    shown, wanted = setting.value.strip().lower(), value.strip().lower()
    return shown == wanted or (
        _is_number(wanted) and _is_number(shown) and int(shown) == int(wanted)
    )


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", text) is not None


def _note_missing_group(clients: ClusterClients, group: str) -> None:
    """Say on standard error that there is no such group yet, as its name may be a wrong one."""
    try:
        found = {each.group for each in clients.list_groups()}
    except (StreamsError, OutcomeUnknown, ConnectionLost):
        return
    if group not in found:
        print_message(
            f"there is no group {group!r} yet that this user sees, and configurations are kept by "
            f"the name{suggest_names([group], found)}"
        )


def suggest_names(names: Iterable[str], known: Collection[str]) -> str:
    """Return the end of a message with the known names that unknown ones may stand for."""
    guesses = {
        name: close[0]
        for name in names
        if name not in known and (close := difflib.get_close_matches(name, known, n=1))
    }
    return "".join(f"; is {guess!r} meant by {name!r}?" for name, guess in guesses.items())


def list_setting_rows(settings: Mapping[str, GroupSetting]) -> list[dict[str, Any]]:
    """Return a row for each configuration, by name."""
    return [
        {"name": name, "value": each.value, "set_for_group": not each.is_default}
        for name, each in sorted(settings.items())
    ]


def _require_group(clients: ClusterClients, group: str) -> GroupListing:
    """Return the listing of a group. Raises ConfigError if there is none."""
    found = {each.group: each for each in clients.list_groups()}
    if group not in found:
        close = difflib.get_close_matches(group, found, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ConfigError(
            f"there is no group {group!r} on {clients.servers}: {hint}"
            f"{format_command('group list')} shows the groups"
        )
    return found[group]
