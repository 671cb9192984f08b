"""Define the command `millrace` as a group that imports a command when it is run.

`millrace --version`, `--help` and shell completion import no clients, no stores and no Spark, which
take a second. So the sentences of `millrace --help` are here, and a unit test compares them with
the docstrings of the commands.
"""

from __future__ import annotations

import sys
from collections import UserDict
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
import typer.core

from streams.command_options import HELP_MARKUP
from streams.commands.usage_errors import CommandError, UsageError, describe_usage_error
from streams.version import VERSION


class LazyCommand(NamedTuple):
    """Names where a command is defined, as module:function or module:typer, and summarises it."""

    target: str
    summary: str


COMMANDS = {
    "new": LazyCommand(
        "streams.commands.new_command:create_project",
        "Create the project of a new application: the application, its test, CI and a README.",
    ),
    "run": LazyCommand(
        "streams.commands.run_command:run",
        "Run an application until SIGTERM or SIGINT, then commit and leave.",
    ),
    "broker": LazyCommand(
        "streams.commands.broker_command:broker",
        "Run a broker that any Kafka client can use, until SIGTERM.",
    ),
    "create-topics": LazyCommand(
        "streams.commands.create_topics_command:create_topics",
        "Create topics for an application to read and write; those that exist stay as they are.",
    ),
    "topics": LazyCommand(
        "streams.commands.topics_command:topics",
        "List, describe, delete and read topics.",
    ),
    "produce": LazyCommand(
        "streams.commands.produce_command:produce",
        "Write records to a topic: those given as arguments, or one for each line of the input.",
    ),
    "consume": LazyCommand(
        "streams.commands.consume_command:consume",
        "Print the records of a topic, a line for each, until Ctrl-C.",
    ),
    "import-offsets": LazyCommand(
        "streams.commands.import_offsets_command:import_offsets",
        "Take the offsets and the state of a Kafka Streams application over.",
    ),
    "group": LazyCommand(
        "streams.commands.group_command:group",
        "Look at groups, configure and delete them, reset an application's, or restore offsets.",
    ),
    "state": LazyCommand(
        "streams.commands.state_command:state",
        "Look at what an application's state directory holds.",
    ),
    "changelog": LazyCommand(
        "streams.commands.changelog_command:changelog",
        "Look at the changelog topics of an application's stores.",
    ),
    "query": LazyCommand(
        "streams.commands.query_command:query_store",
        "Read a store of a running application: one key, or a range, as all workers have committed "
        "it.",
    ),
    "txn": LazyCommand(
        "streams.commands.txn_command:txn",
        "List the transactions of a cluster, and abort one.",
    ),
    "metrics": LazyCommand(
        "streams.commands.metrics_command:metrics",
        "Show the figures of an application that matter, each with its normal range.",
    ),
    "doctor": LazyCommand(
        "streams.doctor.doctor_command:doctor",
        "Say what is wrong with an application, its machine and its cluster, and what mends it.",
    ),
    "logs": LazyCommand(
        "streams.commands.logs_command:logs",
        "Find in logs what went wrong.",
    ),
    "plan": LazyCommand(
        "streams.commands.plan_command:plan",
        "Tell what a new version of an application means for the state that the old one has left.",
    ),
    "acls": LazyCommand(
        "streams.commands.acls_command:acls",
        "Print the least rights that an application needs, as a table and as kafka-acls commands.",
    ),
    "explain-error": LazyCommand(
        "streams.commands.explain_error_command:explain_error",
        "Explain an error code, MR-0xx, or a message: what it means, and what to do.",
    ),
    "schema": LazyCommand(
        "streams.commands.schema_command:schema",
        "Print the JSON Schema of what a command prints with --json.",
    ),
    "export": LazyCommand(
        "streams.spark.exporting.export_command:export",
        "Write an application's changelogs and outputs up to one cut, continuing the last export.",
    ),
    "reconcile": LazyCommand(
        "streams.spark.reconciliation.reconcile_command:reconcile",
        "Compute with Spark what an application should hold, and compare it with what it holds.",
    ),
}
"""The commands in the order of `millrace --help`."""


def load_command(name: str) -> Any:
    """Import a command and return it as typer's command or group."""
    module, _, variable = COMMANDS[name].target.partition(":")
    found = getattr(import_module(module), variable)
    if isinstance(found, typer.Typer):
        command: Any = typer.main.get_group(found)
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode=HELP_MARKUP)
        single.command(name)(found)
        command = typer.main.get_command(single)
    command.name = name
    return command


class CommandTable(UserDict[str, Any]):
    """Maps the names of the commands to the commands, each of which is imported at its look-up."""

    def __init__(self) -> None:
        super().__init__()
        self.data = dict.fromkeys(COMMANDS)

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = load_command(name)
        return self.data[name]


class LazyCommands(typer.core.TyperGroup):
    """Represents all commands, each of which is imported only when it is run."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**{**attributes, "commands": {}})
        self.commands = CommandTable()
        self._shows_summaries = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or for lists of commands one that has its summary only."""
        if self._shows_summaries and cmd_name in COMMANDS:
            return typer.core.TyperCommand(cmd_name, help=COMMANDS[cmd_name].summary)
        return self.commands.get(cmd_name)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and end the process; wrong arguments are one line on standard error."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        options["standalone_mode"] = False
        try:
            status = super().main(*args, **options)
        except UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
                error.show()
            else:
                sys.stderr.write(f"millrace: {describe_usage_error(error)}\n")
            status = error.exit_code
        except CommandError as error:
            sys.stderr.write(f"millrace: {error.format_message()}\n")
            status = error.exit_code
        except typer.Abort:
            sys.stderr.write("Aborted.\n")
            status = 1
        sys.exit(status if isinstance(status, int) else 0)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of `millrace` itself."""
        self._shows_summaries = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._shows_summaries = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the names of commands that complete what was typed."""
        self._shows_summaries = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._shows_summaries = False


cli = typer.Typer(
    cls=LazyCommands,
    help="Stream processing in Python, exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=HELP_MARKUP,
)


def _print_version(is_wanted: bool) -> None:
    """Print the version and exit, if that is wanted."""
    if is_wanted:
        typer.echo(f"millrace {VERSION}")
        raise typer.Exit


@cli.callback()
def _accept_version(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Stream processing in Python, exactly once."""


def main() -> None:
    """Run the command `millrace` with the arguments of this process."""
    cli()
