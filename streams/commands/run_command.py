"""Define `millrace run`: load an application, apply the command line's settings, and run it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from streams.app import App, import_app
from streams.command_lines import hold_invocation
from streams.command_options import (
    AppArgument,
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    SchemaRegistryFile,
    SettingOptions,
    exit_on_user_error,
)
from streams.processes.logging_setup import configure_logging
from streams.processes.reloading import run_with_reload
from streams.settings.choices import LogFormat, LogLevel
from streams.settings.command_line import (
    parse_settings,
    read_connection_option,
    read_schema_registry_option,
)


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
            **read_connection_option(connection),
            **read_schema_registry_option(schema_registry),
            **parse_settings(settings or []),
        )
    return found


def _prepare_run(load: Callable[[], App], workers: int) -> Callable[[], None]:
    """Load an App and return what runs it, in a process that typer does not end."""
    try:
        return partial(load().run, workers)
    except typer.Exit as end:
        sys.exit(end.exit_code)
