"""Define the commands that run an application, create topics, and plan a change."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from streams.app import App, import_app
from streams.command_lines import hold_invocation, note_invocation
from streams.command_options import (
    AppArgument,
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    SchemaRegistryFile,
    SettingOptions,
    StateDir,
    exit_on_user_error,
)
from streams.commands import plan_command
from streams.commands.cluster_clients import ClusterClients
from streams.commands.internal_topics import find_names_of_internal_topics
from streams.commands.output import print_json_line
from streams.commands.plan_changelogs import NOT_REVIEWED, ChangelogReview, review_changelogs
from streams.commands.plan_inputs import InputReview, review_inputs
from streams.commands.plan_output import build_plan_output
from streams.commands.plan_topics import (
    TopicOutcome,
    TopicReview,
    list_review_lines,
    review_internal_topics,
)
from streams.commands.root import cli, main
from streams.errors import ConfigError
from streams.membership.group_offsets import fetch_group_offsets
from streams.processes.cluster import find_cluster
from streams.processes.logging_setup import configure_logging
from streams.processes.reloading import run_with_reload
from streams.runtime.clients import KafkaClientSupplier
from streams.settings.command_line import (
    parse_settings,
    read_connection,
    read_schema_registry,
)
from streams.settings.config import LogFormat, LogLevel, StreamsConfig, load_config
from streams.topology.build import Topology
from streams.topology.compare_versions import UpgradePlan, compare_topologies
from streams.topology.description import describe_topology

_BROKER_WAIT_S = 10.0

__all__ = ["cli", "create_topics", "main", "plan", "run"]


def run(
    app: AppArgument,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    config: ConfigFile = None,
    bootstrap_servers: BootstrapServers = None,
    state_dir: Annotated[Path | None, typer.Option(help="Where state is kept.")] = None,
    processing_guarantee: Annotated[
        str | None, typer.Option(help="exactly_once_v2, exactly_once or at_least_once.")
    ] = None,
    health_port: Annotated[
        int | None, typer.Option(help="Answer /health, /live and /metrics on this port.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Answer /metrics alone on this port.")
    ] = None,
    health_host: Annotated[
        str | None, typer.Option(help="The address of these ports, 127.0.0.1 if none is given.")
    ] = None,
    shutdown_timeout_ms: Annotated[
        int | None, typer.Option(help="How long SIGTERM may take to commit and leave.")
    ] = None,
    uncaught_exception_handler: Annotated[
        str | None,
        typer.Option(help="shutdown_client, shutdown_application or replace_thread."),
    ] = None,
    settings: SettingOptions = None,
    log_level: Annotated[
        LogLevel | None, typer.Option(help="The least important lines that are logged.")
    ] = None,
    log_format: Annotated[
        LogFormat | None, typer.Option(help="For people, or a JSON object a line.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="The same as --log-level debug.")
    ] = False,
    connection: ConnectionFile = None,
    schema_registry: SchemaRegistryFile = None,
    reload: Annotated[
        bool,
        typer.Option("--reload", help="Start again whenever a source file of it has changed."),
    ] = False,
) -> None:
    """Run an application until SIGTERM or SIGINT, then commit and leave."""
    if verbose:
        log_level = "debug"
    configure_logging(log_level or "info", log_format or "text")  # for the import of the module
    flags: dict[str, Any] = {
        "bootstrap_servers": bootstrap_servers,
        "state_dir": state_dir,
        "processing_guarantee": processing_guarantee,
        "health_port": health_port,
        "metrics_port": metrics_port,
        "health_host": health_host,
        "log_level": log_level,
        "log_format": log_format,
        "shutdown_timeout_ms": shutdown_timeout_ms,
        "uncaught_exception_handler": uncaught_exception_handler,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    load = partial(_load_app, app, config, connection, schema_registry, settings, given)
    with hold_invocation(application=app, config_file=config, connection_file=connection):
        if reload:
            raise typer.Exit(run_with_reload(partial(_prepare_run, load, workers), Path.cwd()))
        load().run(workers)


def _load_app(
    app: str,
    config: Path | None,
    connection: Path | None,
    schema_registry: Path | None,
    settings: list[str] | None,
    flags: dict[str, Any],
) -> App:
    """Import an App and apply the command line's settings; exit with 2 for a user's mistake."""
    with exit_on_user_error():
        found = import_app(app)
        found.configure(
            config,
            **flags,
            **read_connection(connection),
            **read_schema_registry(schema_registry),
            **parse_settings(settings or []),
        )
    return found


def _prepare_run(load: Callable[[], App], workers: int) -> Callable[[], None]:
    """Load an App and return what runs it, in a process that typer does not end."""
    try:
        return partial(load().run, workers)
    except typer.Exit as end:
        sys.exit(end.exit_code)


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
            retry_s=_BROKER_WAIT_S
        )
        existing = admin.fetch_partition_counts_at_start(_BROKER_WAIT_S)
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


def plan(
    app: AppArgument,
    against: Annotated[
        Path | None, typer.Option(help="What --save wrote of the version that ran.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write what this version is.")] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC=NUMBER", help="Of an input topic, as often as needed."),
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(help="Ask this Kafka, or 'embedded', for the topics' partitions."),
    ] = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    rolling: Annotated[
        bool, typer.Option("--rolling", help="The new version is to run beside the old one.")
    ] = False,
    connection: ConnectionFile = None,
    json: JsonOutput = False,
) -> None:
    """Tell what a new version of an application means for the state that the old one has left.

    With --bootstrap-servers also what a start does with internal topics that exist, which
    changelogs can't rebuild their stores, and which of its topics are missing. Ends with status 1
    if state would be lost, 2 if the comparison can't be made, and 4 if a start would be refused for
    the settings of an internal topic, since inputs that meet by key have other partition counts, or
    since a changelog can't rebuild its store; with --rolling also with 3 if no state would be lost,
    but the two versions may not run side by side.
    """
    with exit_on_user_error():
        note_invocation(application=app, config_file=config, connection_file=connection)
        if against is None and save is None and bootstrap_servers is None:
            raise ConfigError(
                "plan needs --against FILE to compare with, --save FILE to write, or "
                "--bootstrap-servers to look at internal topics"
            )
        found = import_app(app)
        given = {"bootstrap_servers": bootstrap_servers, "state_dir": state_dir}
        given = {name: value for name, value in given.items() if value is not None}
        found.configure(config, **given, **read_connection(connection))
        topology = found.topology()
        new = describe_topology(topology)
        old = (
            None if against is None else plan_command.load_description(against, new.application_id)
        )
        inputs = [*new.input_topics, *(old.input_topics if old else ())]
        counts: dict[str, int] = {}
        reviews: list[TopicReview] = []
        changelogs, servers = NOT_REVIEWED, None
        if bootstrap_servers is not None:
            servers, counts, reviews, changelogs = _look_at_cluster(topology, found.config)
        counts |= plan_command.parse_partitions(partitions or [], inputs)
        dead_letter_topics = found.config.handlers.dead_letter_topics()
        of_inputs = review_inputs(topology, counts, dead_letter_topics, servers)
        result = None if old is None else compare_topologies(old, new, counts)
        refused = plan_command.list_rebuilt_stores(result) & changelogs.refusals.keys()
        status = _choose_plan_status(result, reviews, of_inputs, refused, is_rolling=rolling)
        _print_plan(result, of_inputs, reviews, changelogs, status, as_json=json)
        if save is not None:
            plan_command.save_description(save, new, counts)
    if status:
        raise typer.Exit(status)


def _print_plan(
    result: UpgradePlan | None,
    of_inputs: InputReview,
    reviews: list[TopicReview],
    changelogs: ChangelogReview,
    status: int,
    *,
    as_json: bool,
) -> None:
    """Print what was found of versions, inputs and topics, or one object of JSON."""
    of_changelogs = changelogs.list_lines(plan_command.list_rebuilt_stores(result))
    if as_json:
        print_json_line(build_plan_output(result, of_inputs, reviews, of_changelogs, status))
        return
    if result is not None:
        plan_command.print_plan(result, Console())
    for line in (*of_inputs.list_lines(), *list_review_lines(reviews), *of_changelogs):
        typer.echo(line)


def _look_at_cluster(
    topology: Topology, config: StreamsConfig
) -> tuple[str, dict[str, int], list[TopicReview], ChangelogReview]:
    """Return the addresses, each topic's number of partitions, and reviews of internal topics.

    Raises ConfigError if no broker answers.
    """
    note_invocation(bootstrap_servers=config.bootstrap_servers, state_dir=config.state_dir)
    cluster = find_cluster(config)
    servers = cluster.bootstrap_servers
    admin = KafkaClientSupplier("millrace", config, servers, cluster.security).create_admin()
    counts = admin.fetch_partition_counts_at_start(_BROKER_WAIT_S)
    clients = ClusterClients(config, cluster)
    fetch_committed = partial(
        fetch_group_offsets,
        *(clients.open_connection, topology.application_id, None),
        require_stable=False,
    )
    now_ms = int(time.time() * 1_000)
    return (
        servers,
        counts,
        review_internal_topics(topology, config, admin, servers, counts),
        review_changelogs(topology, config, clients.admin, fetch_committed, counts, now_ms),
    )


def _choose_plan_status(
    result: UpgradePlan | None,
    reviews: Iterable[TopicReview],
    of_inputs: InputReview,
    refused_stores: Collection[str],
    *,
    is_rolling: bool,
) -> int:
    """Return the exit status of `millrace plan` where the comparison could be made."""
    if result is not None and result.loses_state:
        return 1
    is_refused = any(each.outcome is TopicOutcome.REFUSED for each in reviews)
    if of_inputs.conflict or refused_stores or is_refused:
        return 4
    return 3 if result is not None and is_rolling and result.conflicts else 0
