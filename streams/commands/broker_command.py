"""Define `millrace broker`: run a broker; look at the embedded one, and stop it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from streams.command_options import (
    HELP_MARKUP,
    JsonOutput,
    SettingOptions,
    StateDir,
    exit_on_user_error,
)
from streams.commands.output import print_json_line, print_message
from streams.errors import ConfigError
from streams.processes.broker_start import build_broker_command
from streams.processes.broker_stop import EmbeddedBrokerStatus, probe_broker, stop_broker
from streams.processes.embedded import refuse_embedded_directory
from streams.settings.config import load_config

_NOT_RUNNING_STATUS = 1
_ANSWER_TIMEOUT_S = 3.0

broker = typer.Typer(
    help="Run a broker that any Kafka client can use, until SIGTERM.",
    rich_markup_mode=HELP_MARKUP,
)


@broker.callback(invoke_without_command=True)
def run_broker(
    context: typer.Context,
    data: Annotated[
        Path | None, typer.Option(help="The directory of topics; made if missing.")
    ] = None,
    port: Annotated[int, typer.Option(help="The port to listen on; 0 picks a free one.")] = 9092,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    settings: SettingOptions = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Answer Prometheus on this port of this machine.")
    ] = None,
    metrics_host: Annotated[
        str | None, typer.Option(help="The address for Prometheus, 127.0.0.1 by default.")
    ] = None,
    faults: Annotated[
        Path | None, typer.Option(help="Faults to inject, TOML or JSON; see docs/faults.md.")
    ] = None,
    log_level: Annotated[
        str, typer.Option(help="debug, info (what happens to groups), warning or error.")
    ] = "warning",
) -> None:
    """Run a broker that any Kafka client can use, until SIGTERM."""
    if context.invoked_subcommand is not None:
        return
    with exit_on_user_error():
        if data is None:
            raise ConfigError(
                "a broker needs --data DIR, its directory; the subcommands status and stop are for "
                "the embedded broker of a state directory"
            )
        refuse_embedded_directory(data)
    command = [*build_broker_command(data, port, host, settings or []), "--log-level", log_level]
    if metrics_port is not None:
        command += ["--metrics-port", str(metrics_port)]
    if metrics_host is not None:
        command += ["--metrics-host", metrics_host]
    if faults is not None:
        command += ["--faults", str(faults)]
    os.execv(command[0], command)  # nosec B606 # our own module, without a shell


@broker.command()
def status(json: JsonOutput = False, state_dir: StateDir = None) -> None:
    """Say whether the embedded broker of a state directory runs, and where.

    Starts none. Ends with status 1 if none runs, or it does not answer.
    """
    with exit_on_user_error():
        found = probe_broker(_resolve_state_dir(state_dir), _ANSWER_TIMEOUT_S)
    if json:
        print_json_line(found._asdict())
    elif found.is_running:
        typer.echo(_describe_broker(found))
    else:
        typer.echo(f"no embedded broker runs on {found.data}")
    if not found.is_running or found.is_answering is False:
        raise typer.Exit(_NOT_RUNNING_STATUS)


@broker.command()
def stop(
    json: JsonOutput = False,
    state_dir: StateDir = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait until it ends.")] = 60.0,
) -> None:
    """Stop the embedded broker of a state directory, once no worker runs there.

    Its data stay. The next start of a worker starts it again.
    """
    with exit_on_user_error():
        stopped = stop_broker(_resolve_state_dir(state_dir), timeout)
    if json:
        print_json_line(stopped._asdict() | {"is_running": False})
    else:
        print_message(f"stopped the embedded broker at {stopped.address}; its data stay")


def _resolve_state_dir(state_dir: Path | None) -> Path:
    """Return the state directory that is given, or the one of the settings."""
    return load_config(None, {} if state_dir is None else {"state_dir": state_dir}).state_dir


def _describe_broker(found: EmbeddedBrokerStatus) -> str:
    """Format the sentence that says where a broker runs and for which state directory."""
    where = "at an address that is not known"
    if found.address is not None:
        where = f"at {found.address}, process {found.process_id}"
    workers = f"; workers: {', '.join(found.workers)}" if found.workers else "; no worker runs"
    line = f"the embedded broker runs {where}, with its data in {found.data}{workers}"
    if found.is_answering is False:
        line += (
            f"; it has not answered for {_ANSWER_TIMEOUT_S:g} s: it is stopped, as by SIGSTOP "
            f"(`kill -CONT {found.process_id}` lets it go on), or overloaded"
        )
    return line
