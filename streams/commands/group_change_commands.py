"""Define `millrace group delete` and `millrace group configure`, which change groups on brokers.

Configurations of a group (KIP-848, KIP-1071) are kept by its name, whether there is such a group or
not, and outlive it. Which there are is the brokers' to say: their names differ between releases.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
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
from streams.commands.output import print_rows
from streams.commands.topics_command import require_confirmation
from streams.errors import AuthorizationError, ConfigError, StreamsError
from streams.membership.group_offsets import fetch_group_offsets
from streams.runtime.clients.cluster_admin import ClusterAdmin, GroupListing, GroupSetting

GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", help="The name of the group: its application id.")
]
_WITHOUT_MEMBERS = {"Empty", "Dead"}


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
        listed = _find_group(clients, group)
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
        row = {"group": group, "protocol": listed.protocol, "offsets": len(offsets)}
        question = f"Delete the group {group!r} with {len(offsets)} offsets on {clients.servers}?"
        require_confirmation(question, yes=yes)
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
            settings = _change_settings(admin, group, changes)
        else:
            settings = admin.fetch_group_settings(group)
        rows = list_settings(settings)
        print_rows(("name", "value", "set_for_group"), rows, as_json=json)


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


def _change_settings(
    admin: ClusterAdmin, group: str, changes: Mapping[str, str | None]
) -> Mapping[str, GroupSetting]:
    """Change configurations of a group, and return all of them.

    Raises ConfigError with the brokers' reason, and a name that may be meant: some that Kafka has
    are described only where they are set, so that only brokers can tell which there are not.
    """
    try:
        admin.alter_group_settings(group, changes)
    except AuthorizationError:
        raise
    except StreamsError as error:
        hint = suggest_names(changes, admin.fetch_group_settings(group))
        raise ConfigError(f"nothing was changed, {error}{hint}") from error
    return admin.fetch_group_settings(group)


def suggest_names(names: Iterable[str], known: Collection[str]) -> str:
    """Return the end of a message with the known names that unknown ones may stand for."""
    guesses = {
        name: close[0]
        for name in names
        if name not in known and (close := difflib.get_close_matches(name, known, n=1))
    }
    return "".join(f"; is {guess!r} meant by {name!r}?" for name, guess in guesses.items())


def list_settings(settings: Mapping[str, GroupSetting]) -> list[dict[str, Any]]:
    """Return a row for each configuration, by name."""
    return [
        {"name": name, "value": each.value, "set_for_group": not each.is_default}
        for name, each in sorted(settings.items())
    ]


def _find_group(clients: ClusterClients, group: str) -> GroupListing:
    """Return a group as it is listed. Raises ConfigError if there is none."""
    found = {each.group: each for each in clients.list_groups()}
    if group not in found:
        close = difflib.get_close_matches(group, found, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ConfigError(
            f"there is no group {group!r} on {clients.servers}: {hint}"
            f"{format_command('group list')} shows the groups"
        )
    return found[group]
