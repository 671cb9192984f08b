"""Define the command `millrace reconcile`, which compares an application with its inputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.text import Text

from streams.app import import_app
from streams.command_options import (
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    SchemaRegistryFile,
    SettingOptions,
    StateDir,
    exit_on_user_error,
)
from streams.common.user_module import import_user_module
from streams.errors import ConfigError
from streams.settings.command_line import (
    parse_settings,
    read_connection_option,
    read_schema_registry_option,
)
from streams.spark.application_access import resolve_access
from streams.spark.commands import (
    Master,
    SparkSettings,
    Verbose,
    open_spark_session,
    parse_pairs,
)
from streams.spark.cuts.cut import Cut

if TYPE_CHECKING:
    from streams.spark.reconciliation.report import Report

_NOTHING_CHECKED_STATUS, _UNCHECKED_STATUS = 2, 3
"""The exit statuses where nothing could be checked, and where not all was and nothing is off."""


def reconcile(
    app: Annotated[str, typer.Argument(help="Where the App is: module:variable.")],
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    expected: Annotated[
        str | None,
        typer.Option(help="module:function of the inputs, that returns what should be there."),
    ] = None,
    cut: Annotated[
        Path | None, typer.Option(help="A cut that was saved, instead of one that is taken now.")
    ] = None,
    accounts: Annotated[
        list[str] | None,
        typer.Option("--account", help="A store or a topic, as often as needed; by default all."),
    ] = None,
    allow_unchecked: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A store or a topic that may go unchecked, as often as needed."
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="By how much floating-point values may differ.")
    ] = 0.0,
    html: Annotated[Path | None, typer.Option(help="Write the report as a page.")] = None,
    to: Annotated[
        Path | None, typer.Option(help="Write all rows as Parquet, below this directory.")
    ] = None,
    connection: ConnectionFile = None,
    schema_registry: SchemaRegistryFile = None,
    config: ConfigFile = None,
    settings: SettingOptions = None,
    kafka: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of librdkafka for Spark's readers."),
    ] = None,
    master: Master = None,
    spark: SparkSettings = None,
    verbose: Verbose = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as one object of JSON.")
    ] = False,
) -> None:
    """Compute with Spark what an application should hold, and compare it with what it holds.

    Ends with status 0 if all that was asked for was checked and is as expected, 1 if something is
    off, 2 for a mistake or if nothing could be checked, and 3 if nothing is off and not all was
    checked: all stores and topics, unless --account or --expected names some, but for those of
    --allow-unchecked.
    """
    with exit_on_user_error():
        application = import_app(app)
        given = {"bootstrap_servers": bootstrap_servers, "state_dir": state_dir}
        application.configure(
            config,
            **{name: value for name, value in given.items() if value is not None},
            **read_connection_option(connection),
            **read_schema_registry_option(schema_registry),
            **parse_settings(settings or []),
        )
        application.schema_registry.check_settings()
        librdkafka = parse_pairs("--kafka", kafka)
        resolve_access(application.config, kafka=librdkafka).check_connection()
    with open_spark_session("millrace reconcile", master, spark, verbose=verbose) as session:
        from streams.spark.reconciliation.reconcile import NothingChecked
        from streams.spark.reconciliation.reconcile import reconcile as compared

        try:
            report = compared(
                session,
                application,
                expected=None if expected is None else _import_function(expected),
                cut=None if cut is None else Cut.load(cut),
                kafka=librdkafka,
                accounts=accounts,
                tolerance=tolerance,
                allow_unchecked=allow_unchecked or (),
                on_progress=_print_progress,
            )
        except NothingChecked as nothing:
            if as_json:
                _print_json(nothing.report, _NOTHING_CHECKED_STATUS, str(nothing))
            raise
        with report:
            status = 1 if report.is_off else 0 if report.balanced else _UNCHECKED_STATUS
            if as_json:
                _print_json(report, status)
            else:
                _print_report(report, is_written=to is not None)
            # After it is printed: where files can't be written, a long run was not for nothing.
            _write_report(report, html, to)
    if status:
        raise typer.Exit(status)


def _print_json(report: Report, status: int, error: str | None = None) -> None:
    """Print a report as an object of JSON."""
    from streams.spark.reconciliation.report_output import build_report_output

    typer.echo(orjson.dumps(build_report_output(report, status, error)).decode())


def _print_progress(line: str) -> None:
    """Print a line of progress to standard error, so that standard output has the report alone."""
    Console(stderr=True).print(Text(line, style="dim"), soft_wrap=True)


def _write_report(report: Report, html: Path | None, to: Path | None) -> None:
    """Write a report as a page and as rows, if asked to. Raises ConfigError."""
    if html is not None:
        try:
            report.to_html(html)
        except OSError as error:
            raise ConfigError(f"--html {html} can't be written: {error}") from error
    if to is not None:
        report.write(to.absolute())  # Spark may have another working directory


def _print_report(report: Report, *, is_written: bool) -> None:
    """Print a report and, where it is off, the options by which to look further."""
    report.show()
    if report.is_off and not is_written:
        typer.echo("All rows that are off, as Parquet: --to DIR")
    if report.unchecked:
        options = " ".join(f"--allow-unchecked {name}" for name in report.unchecked)
        typer.echo(f"Where it is known that these can't be checked: {options}")


def _import_function(reference: str) -> Callable[..., Any]:
    """Import the function that `module:function` names. Raises ConfigError if there is none."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise ConfigError(f"--expected {reference!r} is not module:function")
    try:
        found = getattr(import_user_module(module), name, None)
    except ModuleNotFoundError as error:
        raise ConfigError(f"no module {error.name!r}, wanted for --expected {reference}") from error
    if not callable(found):
        raise ConfigError(f"{name!r} in {module!r} is no function, wanted for --expected")
    function: Callable[..., Any] = found
    return function
