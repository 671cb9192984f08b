"""Define `millrace logs`: what logs tell of faults, their causes, and the pages about them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from streams.command_options import HELP_MARKUP, JsonOutput, exit_on_user_error
from streams.errors import ConfigError

logs = typer.Typer(
    help="Find in logs what went wrong.",
    no_args_is_help=True,
    rich_markup_mode=HELP_MARKUP,
)


@logs.callback()
def _group_commands() -> None:
    """Find in logs what went wrong."""


@logs.command("analyze")
def analyze(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Logs of workers, of Kafka Streams or of brokers; .gz, .zst and .lz4 too; - for "
            "standard input.",
        ),
    ],
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Print faults as the log grows, until Ctrl-C."),
    ] = False,
    json: JsonOutput = False,
) -> None:
    """Find incidents in logs, and name the likely cause of each and the page about it."""
    with exit_on_user_error():
        if follow and len(files) > 1:
            raise ConfigError(f"--follow takes one log, and {len(files)} are given")
        _analyze_files(files, follows=follow, as_json=json)


def _analyze_files(files: list[str], *, follows: bool, as_json: bool) -> None:
    """Analyze logs, and print what was found."""
    import dataclasses

    from streams.commands.output import print_json_line
    from streams.commands.tables import create_console
    from streams.log_analysis.events import LogEvent
    from streams.log_analysis.printing import ScanProgress, print_analysis, print_event_if_fault
    from streams.log_analysis.report import analyze_logs
    from streams.log_analysis.sources import STANDARD_INPUT, LogSource

    console = create_console()

    def open_sources() -> Iterator[LogSource]:
        for name in files:
            path = Path(name)
            size = path.stat().st_size if name != STANDARD_INPUT and path.is_file() else None
            progress = ScanProgress(path.name, size)
            yield LogSource(name, follows=follows, on_bytes=progress.show_bytes)
            progress.end()

    def show_event(event: LogEvent) -> None:
        if follows and not as_json:
            print_event_if_fault(event, console)

    analysis = analyze_logs(open_sources(), show_event)
    if as_json:
        print_json_line(dataclasses.asdict(analysis))
    else:
        print_analysis(analysis, console)
