"""Define `millrace group preview`, which shows what an assignor would give each consumer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from streams.command_lines import format_command
from streams.command_options import (
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    StateDir,
)
from streams.commands.cluster_clients import (
    ClusterClients,
    connect_command,
    exit_on_cluster_error,
)
from streams.commands.output import print_json_line, print_rows
from streams.common.counted import format_count
from streams.errors import ConfigError
from streams.membership.consumer_group_description import ConsumerMember, fetch_consumers
from streams.monitoring.assignment_preview import (
    ASSIGNORS,
    AssignmentPreview,
    preview_assignment,
)


def preview_group(
    assignor: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(ASSIGNORS)}.")],
    group: Annotated[
        str | None, typer.Argument(metavar="[GROUP]", help="The id of a group of consumers.")
    ] = None,
    members: Annotated[
        int | None, typer.Option(min=1, help="Plan for so many members, without a group.")
    ] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC=COUNT", help="A topic of the plan. Repeatable."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Show which partitions each consumer of a group would get from an assignor, and what moves.

    Nothing is changed. With --members and --partitions it is a plan, and no broker is asked.
    """
    with exit_on_cluster_error():
        if assignor not in ASSIGNORS:
            raise ConfigError(f"--assignor {assignor!r}: choose one of {', '.join(ASSIGNORS)}")
        if (group is None) == (members is None and not partitions):
            raise ConfigError("name a group, or plan without one: --members and --partitions")
        if group is None:
            counts = parse_partition_counts(partitions or [])
            if members is None or not counts:
                raise ConfigError("a plan needs both --members and --partitions TOPIC=COUNT")
            planned = {f"member-{n + 1}": ConsumerMember(tuple(counts)) for n in range(members)}
            _print_preview(preview_assignment(None, planned, counts, assignor), as_json=json)
            return
    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        counts = clients.partition_counts
        consumers = clients.ask_brokers(
            lambda open_connection: fetch_consumers(
                open_connection, group, _require_group_protocol(clients, group)
            )
        )
        _print_preview(preview_assignment(group, consumers, counts, assignor), as_json=json)


def parse_partition_counts(texts: list[str]) -> dict[str, int]:
    """Return the partition counts of `TOPIC=COUNT` texts. Raises ConfigError for another text."""
    counts: dict[str, int] = {}
    for text in texts:
        topic, _, count = text.rpartition("=")
        if not topic or not (count.isascii() and count.isdigit()) or int(count) < 1:
            raise ConfigError(f"--partitions {text!r}: write TOPIC=COUNT, as orders=12")
        if topic in counts:
            raise ConfigError(f"--partitions {text!r}: topic {topic!r} is named twice")
        counts[topic] = int(count)
    return counts


def _require_group_protocol(clients: ClusterClients, group: str) -> str:
    """Return the protocol of a group. Raises ConfigError where there is no such group."""
    for each in clients.list_groups():
        if each.group == group:
            return each.protocol
    raise ConfigError(
        f"there is no group {group!r} on {clients.servers}: {format_command('group list')} shows "
        "those that there are"
    )


def _print_preview(preview: AssignmentPreview, *, as_json: bool) -> None:
    """Print a preview as one object of JSON, or as a table and a line of what would move."""
    if as_json:
        print_json_line(asdict(preview))
        return
    columns = ("now", "then", "gains", "loses")
    rows = [
        {
            "member": each.instance_id or each.member,
            **{name: _format_partitions(getattr(each, name)) for name in columns},
        }
        for each in preview.members
    ]
    print_rows(("member", *columns), rows, as_json=False)
    typer.echo(
        f"{preview.assignor} would move "
        f"{format_count(preview.moved, 'partition')} from one member to another"
    )


def _format_partitions(partitions: Mapping[str, list[int]]) -> str:
    """Return partitions as text: each topic with its numbers."""
    return " ".join(f"{topic}:{','.join(map(str, each))}" for topic, each in partitions.items())
