"""Define the command `millrace export`: write an application's topics as Parquet, or verify it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.app import App, import_app
from streams.command_options import (
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    SettingOptions,
    exit_on_user_error,
)
from streams.common.counted import format_count
from streams.errors import ConfigError
from streams.settings.command_line import parse_settings, read_connection_option
from streams.settings.config import StreamsConfig, load_config
from streams.spark.application_access import resolve_access
from streams.spark.commands import Master, SparkSettings, Verbose, open_spark_session
from streams.spark.source.options import RECORDS_PER_SPLIT

if TYPE_CHECKING:
    from streams.spark.exporting.manifest import ExportManifest
    from streams.spark.exporting.verify import ExportVerdict


class ExportFormat(StrEnum):
    """Names the file formats of an export; Parquet is the only one."""

    PARQUET = "parquet"


def export(
    application_id: Annotated[
        str | None, typer.Argument(help="Whose changelogs; or give --app.")
    ] = None,
    to: Annotated[Path | None, typer.Option(help="The directory of the exports.")] = None,
    verify: Annotated[
        Path | None, typer.Option(help="Check this directory of exports, and beside the topics.")
    ] = None,
    format: Annotated[ExportFormat, typer.Option(help="Of the files.")] = ExportFormat.PARQUET,  # noqa: A002
    app: Annotated[
        str | None, typer.Option(help="module:variable: its outputs are exported too.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(help="An output to export, as often as needed.")
    ] = None,
    store: Annotated[
        list[str] | None, typer.Option(help="Export the changelogs of these stores only.")
    ] = None,
    inputs: Annotated[
        bool, typer.Option("--inputs", help="With --app: what it has read too.")
    ] = False,
    to_now: Annotated[
        bool, typer.Option("--to-now", help="Outputs that the cut doesn't tell: as of now.")
    ] = False,
    no_topics: Annotated[
        bool, typer.Option("--no-topics", help="With --verify: look at files and manifests only.")
    ] = False,
    records_per_file: Annotated[
        int, typer.Option(min=1, help="Offsets of one file at most.")
    ] = RECORDS_PER_SPLIT,
    bootstrap_servers: BootstrapServers = None,
    connection: ConnectionFile = None,
    config: ConfigFile = None,
    settings: SettingOptions = None,
    master: Master = None,
    spark: SparkSettings = None,
    verbose: Verbose = False,
) -> None:
    """Write an application's changelogs and outputs up to one cut, continuing the last export.

    With --verify a directory is checked: status 1 if it is not what its manifests and the topics
    say, and each finding is a line.
    """
    with exit_on_user_error():
        if (to is None) == (verify is None):
            raise ConfigError("export needs --to DIR to write to, or --verify DIR to check")
        found, chosen = _load_application(app, config, bootstrap_servers, connection, settings)
        application = _require_application(application_id, found) if to is not None else ""
        if inputs and found is None:
            raise ConfigError("--inputs needs --app module:app, which says what they are")
        kafka = {name: str(value) for name, value in chosen.consumer.items()}
        access = None
        if verify is None or not no_topics:
            access = resolve_access(chosen, kafka=kafka)
            access.check_connection()
    with open_spark_session("millrace export", master, spark, verbose=verbose) as session:
        from streams.spark.cuts.taking import take_cut
        from streams.spark.exporting import export as exporting
        from streams.spark.exporting.verify import verify_exports

        if verify is not None:
            _print_verdict(verify_exports(session, verify, access))
        elif to is not None and access is not None:
            found_topics = ([], []) if found is None else exporting.list_app_topics(found)
            wanted = exporting.ExportRequest(
                stores=store,
                outputs=[*found_topics[0], *(topic or [])],
                inputs=found_topics[1] if inputs else (),
                to_now=to_now,
            )
            cut = take_cut(application, access)
            made = exporting.export_application(
                session, cut, access, to, wanted, records_per_file=records_per_file
            )
            _print_export(made, to)


def _load_application(
    reference: str | None,
    config: Path | None,
    bootstrap_servers: str | None,
    connection: Path | None,
    settings: list[str] | None,
) -> tuple[App | None, StreamsConfig]:
    """Import the App that is referred to, if any, and return it and the configuration."""
    given = {"bootstrap_servers": bootstrap_servers} if bootstrap_servers else {}
    given |= read_connection_option(connection) | parse_settings(settings or [])
    if reference is None:
        return None, load_config(config, given)
    app = import_app(reference)
    app.configure(config, **given)
    return app, app.config


def _require_application(application_id: str | None, app: App | None) -> App | str:
    """Return the App to export if one is given, else its application id.

    Raises ConfigError if both are given and differ, or none is given.
    """
    if app is None:
        if application_id is None:
            raise ConfigError("export needs an application id, or --app module:app")
        return application_id
    if application_id not in (None, app.application_id):
        raise ConfigError(f"--app is {app.application_id!r}, and not {application_id!r}")
    return app


def _print_export(manifest: ExportManifest, directory: Path) -> None:
    """Print the records and offsets that were exported, a line for each topic."""
    from streams.spark.exporting.export_directory import build_export_path
    from streams.spark.exporting.manifest import ExportEnd

    for name, topic in sorted(manifest.topics.items()):
        files = [file for file in manifest.files if file.topic == name]
        records, none = (sum(f.records for f in files), sum(f.no_records for f in files))
        until = "" if topic.until is ExportEnd.CUT else ", to now and not to the cut"
        typer.echo(
            f"{name} ({topic.role.value}): "
            f"{format_count(records, 'record')} and {format_count(none, 'offset')} without one, "
            f"{format_count(len(files), 'file')}{until}"
        )
    if not manifest.cut.exact:
        typer.echo("the committed offsets name no positions: changelogs are as of their ends")
    typer.echo(
        f"{build_export_path(directory, manifest.number)}: "
        f"{format_count(manifest.records, 'record')}"
    )


def _print_verdict(verdict: ExportVerdict) -> None:
    """Print each finding of a verification and a summary; exit with status 1 if it found some."""
    for line in verdict.problems:
        typer.echo(f"wrong: {line}")
    for line in verdict.gone_records:
        typer.echo(f"gone: {line}")
    beside = "the manifests and the topics" if verdict.is_compared else "the manifests"
    found = f"{len(verdict.problems)} findings beside {beside}"
    typer.echo(
        f"{verdict.export_count} exports, {verdict.file_count} files, {verdict.record_count:,} "
        f"records: {f'as {beside} have them' if verdict.holds else found}"
    )
    if not verdict.holds:
        raise typer.Exit(1)
