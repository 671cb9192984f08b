"""Define the options that several commands have, and the exit of a command on a user's mistake.

Nothing here imports clients or stores, so that help and completion are there at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from streams.command_lines import find_millrace_command, hold_invocation
from streams.errors import OutcomeUnknown, UserError

_APP_VARIABLE = re.compile(r"^(\w+)\s*(?::[^=\n]+)?=\s*(?:streams\.)?App\(", re.MULTILINE)
_SOURCE_CHARS_MAX = 1_000_000
HELP_MARKUP: Literal["markdown"] = "markdown"
"""The mode of typer that reads docstrings as paragraphs and wraps their lines anew."""
SERDE_NAMES = ("string", "bytes", "int32", "int64", "float64", "json")
SERDE_METAVAR = "SERDE"


def complete_app(incomplete: str) -> list[str]:
    """Return the `module:variable` names of Apps below the current directory.

    Modules are found by their source, and none is imported: a line of it begins `name = App(`.
    """
    found = []
    for path in sorted([*Path().glob("*.py"), *Path().glob("*/*.py")]):
        module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        if not all(part.isidentifier() for part in module.split(".")):
            continue
        try:
            source = path.read_text(errors="replace")[:_SOURCE_CHARS_MAX]
        except OSError:
            continue
        found += [f"{module}:{name}" for name in _APP_VARIABLE.findall(source)]
    return [each for each in found if each.startswith(incomplete)]


def complete_serde(incomplete: str) -> list[str]:
    """Return the names of serdes that complete what was typed."""
    return [name for name in SERDE_NAMES if name.startswith(incomplete)]


AppArgument = Annotated[
    str,
    typer.Argument(help="Where the App is: module:variable.", autocompletion=complete_app),
]
BootstrapServers = Annotated[
    str | None, typer.Option(metavar="SERVERS", help="Kafka as host:port,...; or 'embedded'.")
]
StateDir = Annotated[
    Path | None, typer.Option(help="The state directory, where the embedded broker is found.")
]
ConfigFile = Annotated[Path | None, typer.Option(help="A TOML or .properties file with settings.")]
SettingOptions = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting, as often as needed."),
]
ConnectionFile = Annotated[
    Path | None,
    typer.Option(help="Settings of a secured cluster: TOML, JSON, or lines NAME=VALUE."),
]
JsonOutput = Annotated[
    bool, typer.Option("--json", help="Print a line of JSON for each row, and nothing else.")
]
KeySerde = Annotated[
    str,
    typer.Option(
        metavar=SERDE_METAVAR,
        help="The serde of keys, by its name.",
        autocompletion=complete_serde,
    ),
]
ValueSerde = Annotated[
    str,
    typer.Option(
        metavar=SERDE_METAVAR,
        help="The serde of values, by its name.",
        autocompletion=complete_serde,
    ),
]
StoreKeySerde = Annotated[
    str | None,
    typer.Option(
        "--key-serde",
        metavar=SERDE_METAVAR,
        help="How keys are read, if not by the App's serde.",
        autocompletion=complete_serde,
    ),
]
StoreValueSerde = Annotated[
    str | None,
    typer.Option(
        "--value-serde",
        metavar=SERDE_METAVAR,
        help="How values are read, if not by the App's serde.",
        autocompletion=complete_serde,
    ),
]
ApplicationArgument = Annotated[
    str,
    typer.Argument(
        metavar="APP",
        help="The application id; or where the App is: module:variable.",
        autocompletion=complete_app,
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do it, without asking whether it is meant.")
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
        with hold_invocation(program=find_millrace_command()):
            yield
    except (UserError, OutcomeUnknown) as error:
        # Not before there is an error: it imports much.
        from streams.processes.error_exit import report_error

        failed = error if isinstance(error, UserError) else UserError(str(error))
        raise typer.Exit(report_error(failed)) from None
