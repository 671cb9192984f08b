"""Define `millrace create-topics`: create topics for an application to read and write."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from streams.command_lines import note_invocation
from streams.command_options import (
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    StateDir,
    exit_on_user_error,
)
from streams.commands.cluster_clients import BROKER_WAIT_S
from streams.commands.internal_topics import find_names_of_internal_topics
from streams.errors import ConfigError
from streams.processes.cluster import find_cluster
from streams.runtime.clients import KafkaClientSupplier
from streams.settings.command_line import read_connection
from streams.settings.config import load_config


def create_topics(
    names: Annotated[list[str], typer.Argument(help="Their names.")],
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of each.")] = 4,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Create topics for an application to read and write; those that exist stay as they are."""
    given: dict[str, Any] = {"bootstrap_servers": bootstrap_servers, "state_dir": state_dir}
    with exit_on_user_error():
        given = {name: value for name, value in given.items() if value is not None}
        found = load_config(config, {**given, **read_connection(connection)})
        note_invocation(
            bootstrap_servers=found.bootstrap_servers,
            state_dir=found.state_dir,
            config_file=config,
            connection_file=connection,
        )
        cluster = find_cluster(found)
        servers = cluster.bootstrap_servers
        admin = KafkaClientSupplier("millrace", found, servers, cluster.security).create_admin(
            retry_s=BROKER_WAIT_S
        )
        existing = admin.fetch_partition_counts_at_start(BROKER_WAIT_S)
        if internal := find_names_of_internal_topics(set(names) - existing.keys()):
            raise ConfigError(
                f"{', '.join(sorted(internal))}: this is the name of an internal topic, which an "
                "application creates itself when it starts, with the partitions and settings that "
                "it needs. Made like this it would lose records"
            )
        admin.create_topics(dict.fromkeys(names, partitions), {}, found.replication_factor)
    typer.echo(f"{', '.join(names)} on {servers}")
    for name in names:
        if existing.get(name, partitions) != partitions:
            typer.echo(
                f"{name} exists already, with {existing[name]} partitions and not {partitions}: "
                "it stays as it is",
                err=True,
            )
