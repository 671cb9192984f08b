"""Define `millrace create-topics`, which is also run as `millrace topics create`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from streams.command_options import (
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    StateDir,
    exit_on_user_error,
)
from streams.common.counted import format_count


def create_topics(
    names: Annotated[list[str], typer.Argument(help="Their names.")],
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of each.")] = 4,
    replicas: Annotated[
        int | None,
        typer.Option(help="Replicas of each partition; -1 is the brokers' default."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--topic-setting", metavar="NAME=VALUE", help="A setting of the topics, repeatable."
        ),
    ] = None,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Create topics for an application to read and write; those that exist stay as they are."""
    from streams.command_lines import note_invocation
    from streams.commands.cluster_clients import BROKER_WAIT_S
    from streams.processes.cluster import find_or_start_cluster
    from streams.runtime.clients import KafkaClientSupplier
    from streams.settings.command_line import read_connection_option
    from streams.settings.config import load_config

    given: dict[str, Any] = {"bootstrap_servers": bootstrap_servers, "state_dir": state_dir}
    with exit_on_user_error():
        given = {name: value for name, value in given.items() if value is not None}
        found = load_config(config, {**given, **read_connection_option(connection)})
        note_invocation(
            bootstrap_servers=found.bootstrap_servers,
            state_dir=found.state_dir,
            config_file=config,
            connection_file=connection,
        )
        topic_settings = _parse_topic_settings(settings or ())
        cluster = find_or_start_cluster(found)
        servers = cluster.bootstrap_servers
        admin = KafkaClientSupplier("millrace", found, servers, cluster.security).create_admin(
            retry_s=BROKER_WAIT_S
        )
        existing = admin.fetch_partition_counts_at_start(BROKER_WAIT_S)
        _refuse_internal_names(set(names) - existing.keys(), topic_settings)
        admin.create_topics(
            dict.fromkeys(names, partitions),
            dict.fromkeys(names, topic_settings),
            found.replication_factor if replicas is None else replicas,
        )
    _print_topics(names, partitions, existing, servers, as_json=json)
    _print_topics_left_unchanged(names, partitions, existing, has_settings=bool(topic_settings))


def _parse_topic_settings(pairs: Iterable[str]) -> dict[str, str]:
    """Parse the NAME=VALUE pairs of --topic-setting. Raises ConfigError."""
    from streams.errors import ConfigError

    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise ConfigError(f"--topic-setting {pair!r} is not NAME=VALUE")
        found[name] = value
    return found


def _refuse_internal_names(new_names: set[str], settings: dict[str, str]) -> None:
    """Raise ConfigError for names of internal topics, unless their settings are given."""
    from streams.commands.internal_topics import select_topics_named_like_internal
    from streams.errors import ConfigError

    internal = select_topics_named_like_internal(new_names)
    if internal and "cleanup.policy" not in settings:
        raise ConfigError(
            f"{', '.join(sorted(internal))}: this is the name of an internal topic, which an "
            "application creates itself when it starts, with the partitions and settings that it "
            "needs. Made like this it would lose records. To create it beforehand say its "
            "settings: --topic-setting cleanup.policy=..."
        )


def _print_topics(
    names: list[str], partitions: int, existing: dict[str, int], servers: str, *, as_json: bool
) -> None:
    """Print the topics that there are now."""
    from streams.commands.output import print_json_line

    if as_json:
        for name in dict.fromkeys(names):
            print_json_line({"topic": name, "partitions": existing.get(name, partitions)})
    else:
        typer.echo(f"{', '.join(names)} on {servers}")


def _print_topics_left_unchanged(
    names: list[str], partitions: int, existing: dict[str, int], *, has_settings: bool
) -> None:
    """Say of each topic that existed in which respect it may not be as was asked for."""
    for name in dict.fromkeys(names):
        count = existing.get(name)
        differs = count is not None and count != partitions
        if count is None or not (differs or has_settings):
            continue
        counts = (
            f", with {format_count(count, 'partition')} and not {partitions}" if differs else ""
        )
        ignored = ", and --topic-setting is not for it" if has_settings else ""
        typer.echo(f"{name} exists already{counts}: it stays as it is{ignored}", err=True)
