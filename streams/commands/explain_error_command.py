"""Define `millrace explain-error`: the section of the documentation about an error, offline."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from streams.command_lines import format_command
from streams.command_options import exit_on_user_error
from streams.errors import ConfigError
from streams.symptoms.lookup import find_by_code, find_by_text, find_nearest_code
from streams.symptoms.pages import require_section
from streams.symptoms.symptom import Symptom
from streams.symptoms.table import SYMPTOMS

_CODE = re.compile(r"\bMR-0\d\d\b")


def explain_error(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CODE|MESSAGE...]",
            help="A code, as MR-012; or the text of an error or a log line. Without, lists all.",
        ),
    ] = None,
) -> None:
    """Explain an error code, MR-0xx, or a message: what it means, and what to do."""
    with exit_on_user_error():
        if not words:
            _print_all_symptoms()
            return
        _print_section(require_section(_require_symptom(" ".join(words))))


def _require_symptom(text: str) -> Symptom:
    """Return the symptom with a code, or of a message. Raises ConfigError if there is none."""
    own = _CODE.search(text)
    found = find_by_code(text) or (own and find_by_code(own[0])) or find_by_text(text)
    if found is not None:
        return found
    if len(text.split()) > 1:
        raise ConfigError(
            f"no symptom has this message: {text!r}. One without a code says itself what is wrong "
            f"(MR-001 to MR-003); {format_command('explain-error')} lists all"
        )
    nearest = find_by_code(find_nearest_code(text))
    assert nearest is not None
    raise ConfigError(
        f"there is no code {text}; the nearest is {nearest.code}: {nearest.meaning} "
        f"{format_command('explain-error')} lists all"
    )


def _print_all_symptoms() -> None:
    """Print all codes with what they mean."""
    from streams.commands.output import print_rows

    rows = [{"code": each.code, "meaning": each.meaning} for each in SYMPTOMS]
    print_rows(("code", "meaning"), sorted(rows, key=lambda row: row["code"]), as_json=False)


def _print_section(section: str) -> None:
    """Print a section of a page: as it is where it is piped, else laid out for the terminal."""
    if not sys.stdout.isatty():
        typer.echo(section, nl=False)
        return
    from rich.markdown import Markdown

    from streams.commands.tables import create_console

    create_console().print(Markdown(section))
