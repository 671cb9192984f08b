"""Define `millrace metrics`: the figures of an application that matter, with their range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streams.command_options import ConfigFile, StateDir, exit_on_user_error
from streams.commands.metric_ranges import list_metric_rows
from streams.commands.metric_scrapes import LocalApplication, Scraper
from streams.commands.output import print_json_line, print_message
from streams.commands.reset_command import resolve_application
from streams.commands.tables import create_console, create_table
from streams.common.addresses import parse_address
from streams.errors import ConfigError
from streams.monitoring.scraped_figures import MetricsOutput

if TYPE_CHECKING:
    from rich.table import Table

_UNANSWERED_STATUS = 1


def metrics(
    where: Annotated[
        list[str],
        typer.Argument(
            metavar="APP|ADDRESS...",
            help="The application id, or module:variable, for the workers of this machine; or "
            "addresses of metrics, as localhost:8080.",
        ),
    ],
    watch: Annotated[bool, typer.Option("--watch", help="Go on until Ctrl-C.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, help="The seconds over which rates are measured.")
    ] = 1.0,
    json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each look, and nothing else.")
    ] = False,
    state_dir: StateDir = None,
    config: ConfigFile = None,
) -> None:
    """Show the figures of an application that matter, each with its normal range.

    Workers are found by the application on this machine, those of other machines by the address of
    their health_port or metrics_port. A broker's metrics port adds its oldest open transaction.
    Ends with status 1 if one of them gives no answer, or was killed.
    """
    with exit_on_user_error():
        looks = Scraper(find_scrape_sources(where, config, state_dir)).summarize_repeatedly(
            interval
        )
        try:
            if watch and not json:
                _show_summaries_live(looks)
                return
            for each in looks:
                _print_summary(each, as_json=json)
                if not watch:
                    raise typer.Exit(_UNANSWERED_STATUS if each.unanswered else 0)
        except KeyboardInterrupt:
            return


def find_scrape_sources(
    apps_or_addresses: Sequence[str], config: Path | None, state_dir: Path | None
) -> list[str | LocalApplication]:
    """Return the addresses that are given, and the applications with workers on this machine.

    Raises: ConfigError if no worker of an application runs, and none was killed of late, or none
    of them has a port.
    """
    found: list[str | LocalApplication] = []
    for given in apps_or_addresses:
        # A worker says at its start where it answers, with http:// before it.
        each = given.removeprefix("http://").removesuffix("/metrics").rstrip("/")
        if _is_address(each):
            found.append(each)
            continue
        app, settings = resolve_application(each, config, None, state_dir, None)
        application_id = each if app is None else app.application_id
        application = LocalApplication(application_id, settings.state_dir)
        targets, without = application.list_targets()
        if not targets:
            runs = f"{without} without a health_port or metrics_port" if without else "none"
            raise ConfigError(
                f"no worker of {application_id!r} on {str(settings.state_dir)!r} has metrics: "
                f"{runs} runs there. Set health_port=8080, or give the addresses of workers on "
                "other machines"
            )
        if without:
            print_message(f"{without} more without a health_port or metrics_port")
        found.append(application)
    return found


def _is_address(text: str) -> bool:
    try:
        parse_address(text)
    except ValueError:
        return False
    return True


def build_table(metrics: MetricsOutput) -> Table:
    """Return the table of a summary; `!` marks what is outside of its normal range."""
    from rich.text import Text

    table = create_table("figure", "value", "normal", "")
    for name, value, normal, is_normal in list_metric_rows(metrics):
        style = "" if is_normal else "bold red"
        mark = "" if is_normal else "!"
        table.add_row(Text(name), Text(value, style), Text(normal), Text(mark, style))
    return table


def _print_summary(metrics: MetricsOutput, *, as_json: bool) -> None:
    if as_json:
        row: dict[str, Any] = asdict(metrics)
        print_json_line(row)
        return
    create_console().print(build_table(metrics))
    for each in metrics.unanswered:
        print_message(each)


def _show_summaries_live(looks: Iterator[MetricsOutput]) -> None:
    """Show each summary in the place of the one before."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=create_console(), auto_refresh=False) as live:
        for each in looks:
            notes = [Text(failure) for failure in each.unanswered]
            live.update(Group(build_table(each), *notes), refresh=True)
