"""Define `millrace schema`: the JSON Schema of what a command prints with --json."""

from __future__ import annotations

from typing import Annotated

import typer

from streams.command_options import exit_on_user_error


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND...]",
            help="The words of a command, as group describe; without them, lists the commands.",
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of what a command prints with --json."""
    from orjson import OPT_INDENT_2, dumps

    from streams.commands.json_outputs import OUTPUTS, describe_output

    if not command:
        for name in OUTPUTS:
            typer.echo(name)
        return
    with exit_on_user_error():
        typer.echo(dumps(describe_output(" ".join(command)), option=OPT_INDENT_2).decode())
