"""Define the command `millrace new`, which creates the project of a new application."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from streams.command_options import JsonOutput, exit_on_user_error
from streams.commands.output import print_json_line
from streams.commands.project_templates import FILES
from streams.errors import ConfigError

_LEGAL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def create_project(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The application id, and the directory's name.")
    ],
    directory: Annotated[
        Path | None, typer.Option(help="Where the project is created; ./NAME if it is not given.")
    ] = None,
    json: JsonOutput = False,
) -> None:
    """Create the project of a new application: the application, its test, CI and a README.

    It counts words, and is there to be changed. Files that exist are never overwritten.
    """
    with exit_on_user_error():
        target = Path(name) if directory is None else directory
        created = write_project(name, target)
    if json:
        for path in created:
            print_json_line({"created": str(path)})
        return
    for path in created:
        typer.echo(str(path))
    typer.echo(f"\nNext: cd {target} && pytest; then see {target / 'README.md'}", err=True)


def write_project(name: str, target: Path) -> list[Path]:
    """Write the files of a project and return their paths.

    Raises ConfigError for a name that is no application id, and where one of the files exists.
    """
    if not _LEGAL_NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} can't be an application id: it may have letters, digits, '.', '_' and '-' "
            "only, begins with a letter or a digit, and has at most 100 of them"
        )
    names = {"name": name, "input": f"{name}-lines", "output": f"{name}-counts"}
    files = {target / path: Template(text).substitute(names) for path, text in FILES.items()}
    if existing := [str(path) for path in files if path.exists()]:
        raise ConfigError(
            f"{', '.join(existing)} exist already: choose another name, or --directory"
        )
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    except OSError as error:
        raise ConfigError(f"{str(target)!r} can't be written: {error.strerror}") from error
    return list(files)
