"""Define the options that several commands have, and the exit of a command on a user's mistake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from streams.app import report_error
from streams.errors import OutcomeUnknown, UserError

BootstrapServers = Annotated[
    str | None, typer.Option(help="Kafka as host:port,...; or 'embedded'.")
]
ConfigFile = Annotated[Path | None, typer.Option(help="A TOML file with settings.")]
SettingOptions = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting, as often as needed."),
]
ConnectionFile = Annotated[
    Path | None,
    typer.Option(help="Settings of a secured cluster: TOML, JSON, or lines NAME=VALUE."),
]

SchemaRegistryFile = Annotated[
    Path | None,
    typer.Option(help="Settings of the application's schema registry: TOML, JSON, or lines."),
]


@contextmanager
def exit_on_user_error() -> Iterator[None]:
    """Exit with status 2 on an error that the user of a command can mend.

    UserError and OutcomeUnknown of the with block are one line on standard error.
    """
    try:
        yield
    except UserError as error:
        raise typer.Exit(report_error(error)) from None
    except OutcomeUnknown as error:
        raise typer.Exit(report_error(UserError(str(error)))) from None
