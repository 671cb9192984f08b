"""Define `millrace doctor`: say what is wrong with an application, its machine and its cluster.

Nothing is changed, and the right to read is enough.
"""

from __future__ import annotations

import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from streams.command_lines import format_command, hold_invocation
from streams.command_options import (
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    StateDir,
    complete_app,
)
from streams.commands.cluster_clients import exit_on_cluster_error, load_command_config
from streams.commands.output import print_json_line
from streams.commands.reset_command import resolve_application
from streams.commands.tables import create_console
from streams.common.counted import format_count
from streams.common.names import check_application_id
from streams.doctor.application_facts import ApplicationFacts, WorkerPlaces
from streams.doctor.applications import find_applications
from streams.doctor.cluster_facts import ClusterFacts
from streams.doctor.consequences import mark_consequences
from streams.doctor.findings import DoctorFinding, Verdict, choose_status, sort_findings
from streams.doctor.points import (
    Point,
    examine_application,
    examine_cluster,
    look_at_points,
    warn_of_points_left,
)
from streams.errors import ConfigError
from streams.settings.config import StreamsConfig

_INDENT = "    "
_PIPED_WIDTH_MIN = 1_000
_TIMEOUT_S = 120.0


HealthPorts = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        max=65_535,
        help="The health_port of a worker of this machine, beside those found; repeatable.",
    ),
]
WorkerLogs = Annotated[
    list[Path] | None,
    typer.Option(exists=True, dir_okay=False, help="A worker's log to look at, too; repeatable."),
]


def doctor(
    app: Annotated[
        str | None,
        typer.Argument(
            metavar="[APP]",
            help="Where the App is: module:variable; or the application id; without, the cluster.",
            autocompletion=complete_app,
        ),
    ] = None,
    all_applications: Annotated[
        bool, typer.Option("--all", help="Look at every application of the cluster.")
    ] = False,
    health_port: HealthPorts = None,
    logs: WorkerLogs = None,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
    timeout: Annotated[
        float, typer.Option(min=0, help="Seconds after which it looks at nothing more.")
    ] = _TIMEOUT_S,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Say what is wrong with an application, its machine and its cluster, and what mends it.

    Looks at machine, settings, group, topics, transactions and stores, and changes nothing. Ends
    with status 1 if there are warnings, 2 if there are errors. Names what it has not looked at.
    """
    deadline_s = time.monotonic() + timeout
    with exit_on_cluster_error():
        if app is not None and all_applications:
            raise ConfigError(f"--all looks at every application: leave out {app!r}")
        found = None
        if app is None:
            settings = load_command_config(
                config,
                bootstrap_servers=bootstrap_servers,
                state_dir=state_dir,
                connection=connection,
            )
        else:
            found, settings = resolve_application(
                app, config, bootstrap_servers, state_dir, connection
            )
            app = check_application_id(app) if found is None else found.application_id
        cluster = ClusterFacts(settings)
        is_alone = app is None and not all_applications
        findings = examine_cluster(cluster, is_alone=is_alone, deadline_s=deadline_s)
        if app is not None:
            places = WorkerPlaces(tuple(health_port or ()), tuple(logs or ()))
            facts = ApplicationFacts(cluster, app, settings, found, places)
            findings += examine_application(facts, deadline_s=deadline_s)
        elif all_applications:
            findings += _examine_every_application(cluster, settings, deadline_s)
        findings += warn_of_points_left(findings)
        findings = sort_findings(mark_consequences(findings))
        status = choose_status(findings)
        if json:
            print_json_line({"status": status, "findings": [asdict(each) for each in findings]})
        else:
            print_findings(findings)
    if status:
        raise typer.Exit(status)


def _examine_every_application(
    cluster: ClusterFacts, settings: StreamsConfig, deadline_s: float
) -> list[DoctorFinding]:
    """Look at every application of the cluster, each known by its id."""
    names: list[str] = []

    def look() -> list[DoctorFinding]:
        names.extend(find_applications(cluster))
        return []

    findings = list(look_at_points([Point("applications", look)], deadline_s=deadline_s))
    for each in names:
        with hold_invocation(application_id=each):
            facts = ApplicationFacts(cluster, each, settings)
            findings += examine_application(facts, deadline_s=deadline_s)
    return findings


def print_findings(findings: Sequence[DoctorFinding]) -> None:
    """Print findings, the worst first, and how many there are of each verdict.

    Points that could not be looked at for the same reason are one line. A reason that is an error
    above is not repeated.
    """
    width = create_console().width
    for each in merge_findings_not_looked_at(findings):
        place = f"{each.application}: " if each.application else ""
        typer.echo(f"{each.verdict}: {place}{each.point}: {each.what}")
        more = format_command("explain-error", each.code) if each.code else ""
        for label, text in (("leads to", each.consequence), ("do", each.remedy), ("see", more)):
            if text:
                _print_detail(f"{label}: {text}", width)
    counts = Counter(each.verdict for each in findings)
    errors = format_count(counts[Verdict.ERROR], "error")
    warnings = format_count(counts[Verdict.WARNING], "warning")
    unknown, fine = counts[Verdict.NOT_LOOKED_AT], counts[Verdict.FINE]
    typer.echo(f"{errors}, {warnings}, {fine} fine, {unknown} not looked at")


def merge_findings_not_looked_at(findings: Sequence[DoctorFinding]) -> Iterator[DoctorFinding]:
    """Yield findings, with those that could not be looked at for one reason as one."""
    errors = {each.what for each in findings if each.verdict is Verdict.ERROR}

    def describe_reason(found: DoctorFinding) -> tuple[str, str]:
        return ("" if found.what in errors else found.application), found.what

    alike: dict[tuple[str, str], list[str]] = {}
    for each in findings:
        if each.verdict is Verdict.NOT_LOOKED_AT:
            alike.setdefault(describe_reason(each), []).append(each.point)
    for each in findings:
        if each.verdict is not Verdict.NOT_LOOKED_AT:
            yield each
        elif points := alike.pop(describe_reason(each), []):
            why = "for the error above" if each.what in errors else each.what
            application, _ = describe_reason(each)
            names = ", ".join(dict.fromkeys(points))
            yield replace(each, point=names, what=why, application=application)


def _print_detail(text: str, width: int) -> None:
    """Print a detail of a finding, in several lines on a terminal that is narrower."""
    if width >= _PIPED_WIDTH_MIN:
        typer.echo(_INDENT + text)
        return
    for line in textwrap.wrap(
        text,
        width - len(_INDENT),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    ):
        typer.echo(_INDENT + line)
