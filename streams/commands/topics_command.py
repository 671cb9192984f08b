"""Define the commands `millrace topics ...`: list, describe, delete, tail."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from streams.command_options import (
    HELP_MARKUP,
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    KeySerde,
    StateDir,
    ValueSerde,
    Yes,
)
from streams.commands.create_topics_command import create_topics

topics = typer.Typer(
    help="List, describe, delete and read topics.",
    no_args_is_help=True,
    rich_markup_mode=HELP_MARKUP,
)

TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the topic.")]
TopicsArgument = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Their names.")]


@topics.command("list")
def list_topics(
    internal: Annotated[
        bool, typer.Option("--internal", help="List Kafka's own topics as well.")
    ] = False,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """List the topics with their partitions and the number of offsets that they span."""
    from streams.commands.cluster_clients import connect_command
    from streams.commands.output import print_rows

    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        names = sorted(
            name for name in clients.partition_counts if internal or not name.startswith("__")
        )
        partitions = [each for name in names for each in clients.list_partitions(name)]
        starts = clients.admin.fetch_earliest_offsets(partitions)
        ends = clients.admin.fetch_latest_offsets(partitions)
        rows = [
            {
                "topic": name,
                "partitions": clients.partition_counts[name],
                "offsets": sum(ends[p] - starts[p] for p in clients.list_partitions(name)),
            }
            for name in names
        ]
        print_rows(("topic", "partitions", "offsets"), rows, as_json=json)


@topics.command("describe")
def describe_topic(
    topic: TopicArgument,
    all_settings: Annotated[
        bool, typer.Option("--all", help="Show the settings that are defaults as well.")
    ] = False,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Show a topic's partitions with their offsets and replicas, and the topic's settings.

    The stable end is the first offset of an open transaction: readers of committed records wait
    there. With --json the first line is the topic, and a line for each partition follows.
    """
    from streams.commands.cluster_clients import connect_command

    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        partitions = clients.list_partitions(topic)
        starts = clients.admin.fetch_earliest_offsets(partitions)
        ends = clients.admin.fetch_latest_offsets(partitions)
        stable = clients.admin.fetch_last_stable_offsets(partitions)
        described = clients.cluster_admin.describe_topic(topic)
        settings = {
            name: each.value
            for name, each in sorted(clients.cluster_admin.fetch_topic_settings(topic).items())
            if all_settings or not each.is_default
        }
        rows = [
            {
                "topic": topic,
                "partition": each.number,
                "start": starts[partition],
                "stable_end": stable[partition],
                "end": ends[partition],
                "leader": each.leader,
                "replicas": each.replicas,
                "in_sync": each.in_sync,
            }
            for partition, each in zip(partitions, described, strict=True)
        ]
        _print_description(topic, rows, settings, as_json=json)


def _print_description(
    topic: str, rows: list[dict[str, Any]], settings: dict[str, str | None], *, as_json: bool
) -> None:
    """Print a topic's partitions and settings."""
    from streams.commands.output import print_json_line, print_rows

    if as_json:
        print_json_line({"topic": topic, "partitions": len(rows), "settings": settings})
    columns = ("partition", "start", "stable_end", "end", "leader", "replicas", "in_sync")
    print_rows(columns, rows, as_json=as_json)
    if not as_json:
        for name, value in settings.items():
            typer.echo(f"{name}={value}")


topics.command(
    "create",
    hidden=True,
    help="Create topics: the same command as `create-topics`.",
)(create_topics)


@topics.command("delete")
def delete_topics(
    names: TopicsArgument,
    yes: Yes = False,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Delete topics with all of their records, after a question unless --yes is given."""
    from streams.commands.cluster_clients import connect_command
    from streams.commands.output import print_message, print_rows

    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        for name in names:
            clients.list_partitions(name)  # it raises where there is no such topic
        require_confirmation(
            f"Delete {', '.join(names)} with all records on {clients.servers}?", yes=yes
        )
        clients.cluster_admin.delete_topics(list(dict.fromkeys(names)))
        if json:
            print_rows((), [{"topic": name, "deleted": True} for name in names], as_json=True)
        else:
            print_message(f"deleted {', '.join(names)} on {clients.servers}")


@topics.command("tail")
def tail_topic(
    topic: TopicArgument,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, help="How many of the newest records.")
    ] = 10,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new records until Ctrl-C.")
    ] = False,
    metadata: Annotated[
        bool,
        typer.Option("--metadata", "-m", help="Show partition, offset, time and headers too."),
    ] = False,
    key_serde: KeySerde = "bytes",
    value_serde: ValueSerde = "bytes",
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Print the newest committed records of a topic, in the order of their times."""
    from streams.commands.cluster_clients import connect_command
    from streams.commands.consume_command import create_printer, print_until_interrupt
    from streams.commands.newest_records import read_newest_messages

    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        printer = create_printer(
            topic, key_serde, value_serde, as_json=json, with_metadata=metadata
        )
        partitions = clients.list_partitions(topic)
        starts = clients.admin.fetch_earliest_offsets(partitions)
        ends = clients.admin.fetch_last_stable_offsets(partitions)
        reader = clients.create_reader(committed_only=True)
        try:
            for message in read_newest_messages(reader, starts, ends, count):
                printer.print_record(message)
            if follow:
                print_until_interrupt(reader.read_records(ends), printer)
        finally:
            reader.close()


def require_confirmation(question: str, *, yes: bool) -> None:
    """Ask a question on standard error, and exit with status 1 unless it is answered with yes.

    Raises ConfigError where nobody can be asked.
    """
    import sys

    from streams.errors import ConfigError

    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{question} Nobody can be asked: give --yes if it is meant")
    if not typer.confirm(question, err=True):
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(1)
