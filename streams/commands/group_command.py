"""Define the commands `millrace group ...`, which look at groups on their brokers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streams.command_lines import format_command
from streams.command_options import (
    HELP_MARKUP,
    ApplicationArgument,
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    StateDir,
)
from streams.commands.cluster_clients import (
    connect_clients,
    connect_command,
    exit_on_cluster_error,
)
from streams.commands.group_change_commands import configure_group, delete_group
from streams.commands.output import print_rows
from streams.commands.preview_command import preview_group
from streams.commands.reset_command import reset, resolve_application
from streams.commands.restore_offsets_command import restore_offsets
from streams.commands.tables import create_console, create_table, shorten_ids
from streams.errors import AuthorizationError, ConfigError
from streams.ledger import ledger_topic
from streams.membership.application_group import STREAMS, fetch_group_description
from streams.membership.group_offsets import fetch_group_offsets
from streams.monitoring.group_report import (
    STABLE,
    GroupReport,
    MemberReport,
    PartitionLag,
    StandbyTask,
    TopicOffsets,
    build_report,
    format_consumer_group_command,
    list_report_partitions,
)
from streams.monitoring.streams_group_members import convert_group_members, find_missing_topics
from streams.runtime.clients import Admin
from streams.settings.config import StreamsConfig

_VERSION_CHARS = 8
"""How much of a topology's fingerprint tells versions apart in a table."""

_CLASSIC, _NOT_READY = "classic", "NotReady"
"""The protocol of groups whose leader assigns, and a state of groups of the other one."""

group = typer.Typer(
    help="Look at groups, configure and delete them, reset an application's, or restore offsets.",
    no_args_is_help=True,
    rich_markup_mode=HELP_MARKUP,
)
group.command("configure")(configure_group)
group.command("delete")(delete_group)
group.command()(reset)
group.command()(restore_offsets)
group.command("preview")(preview_group)


@group.command("list")
def list_groups(
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """List all groups of the cluster with their state and protocol.

    The group of an application has the name of its application id, and the protocol that the
    setting group_protocol says.
    """
    with connect_command(bootstrap_servers, state_dir, connection, config) as clients:
        _ = clients.partition_counts  # it raises where no broker answers
        rows = [each._asdict() for each in clients.list_groups()]
        print_rows(("group", "state", "protocol"), rows, as_json=json)


@group.command()
def describe(
    app: ApplicationArgument,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Show the members of an application's group, their tasks, and how far each is behind.

    No worker is asked: all comes from the brokers. In a rebalance of the classic protocol they tell
    who the members are, and nothing of their tasks.
    """
    with exit_on_cluster_error():
        found, settings = resolve_application(app, config, bootstrap_servers, state_dir, connection)
        report = fetch_group_report(app if found is None else found.application_id, settings)
    if json:
        typer.echo(report.as_json())
        return
    print_report(report, create_console())


def fetch_group_report(application_id: str, config: StreamsConfig) -> GroupReport:
    """Fetch and build the report of an application's group.

    An embedded broker that does not run is not started: there is no group to look at.

    Raises: ConfigError for a group that does not exist or is of another program, ConnectionLost or
    OutcomeUnknown where brokers don't answer, AuthorizationError.
    """
    clients = connect_clients(config)
    counts = clients.partition_counts
    description = clients.ask_brokers(
        lambda open_connection: fetch_group_description(open_connection, application_id)
    )
    if description is None:
        raise ConfigError(
            f"there is no group {application_id!r} of the classic or the streams protocol on "
            f"{clients.servers}: no worker of this application has run there, or its "
            "offsets have expired; is the application id right? If it is a group of consumers, "
            f"{format_consumer_group_command(application_id)} shows its members and lags"
        )
    members = convert_group_members(application_id, description, counts)
    committed = clients.ask_brokers(
        lambda open_connection: fetch_group_offsets(
            open_connection, application_id, None, require_stable=False
        )
    ).offsets
    partitions = list_report_partitions(application_id, members, counts, committed)
    ends = clients.admin.fetch_latest_offsets(partitions) if partitions else {}
    offsets = TopicOffsets(counts, committed, ends)
    protocol = _CLASSIC if description.streams is None else STREAMS
    report = build_report(application_id, description.state, members, offsets, protocol)
    missing = find_missing_topics(
        description,
        counts,
        partial(find_hidden_topics, clients.admin),
        has_run=bool(committed) or ledger_topic(application_id) in counts,
    )
    return replace(
        report,
        missing_topics=missing.inputs,
        missing_internal_topics=missing.internal,
        hidden_topics=missing.hidden,
        has_run=missing.has_run,
    )


def find_hidden_topics(admin: Admin, topics: Collection[str]) -> set[str]:
    """Return those of topics that this user may not describe: they are left out of lists."""
    hidden = set()
    for topic in topics:
        try:
            admin.check_topic_rights({topic: ("Describe",)})
        except AuthorizationError:
            hidden.add(topic)
    return hidden


def print_report(report: GroupReport, console: Console) -> None:
    """Print a report: what the group is, a table of members, one of tasks, and what is wrong."""
    console.print(Text(_describe_group(report)))
    names = shorten_ids((_name_member(each) for each in report.members), f"{report.group}-")
    if report.members:
        console.print(_build_members_table(report, names))
    if any(each.active or each.standby or each.warmup for each in report.members):
        console.print(_build_tasks_table(report, names))
    for line in _list_notes(report):
        console.print(Text(line))


def _describe_group(report: GroupReport) -> str:
    count = len(report.members)
    text = f"group {report.group}: {report.state}, {count or 'no'} member{'s'[: count != 1]}"
    if report.former_generation is not None and report.former_generation >= 0:
        word = "at epoch" if report.protocol == STREAMS else "from generation"
        text += f", {word} {report.former_generation}"
    return f"{text}; the broker assigns the tasks" if report.protocol == STREAMS else text


def _name_member(member: MemberReport) -> str:
    return member.instance_id or member.member_id


def _build_members_table(report: GroupReport, names: Mapping[str, str]) -> Table:
    """Return the table of members: who and where they are, and how many tasks they have.

    Processes and directories are shortened, `names` has the short ids of members. Tags are a column
    where a member has some, and processes where the ids of members don't name them.
    """
    processes = shorten_ids(each.process for each in report.members)
    directories = shorten_ids(each.directory for each in report.members)
    tag_columns = ["tags"] if any(each.tags for each in report.members) else []
    is_named = all(processes[m.process] in names[_name_member(m)] for m in report.members)
    process_columns = [] if is_named else ["process"]
    columns = (*process_columns, "directory", *tag_columns, "from", "tasks")
    table = create_table("member", "host", *columns)
    table.add_column("lag", justify="right", overflow="fold")
    for each in report.members:
        lags = [task.lag for task in each.active if task.lag is not None]
        tags = ",".join(f"{key}={value}" for key, value in each.tags.items())
        table.add_row(
            Text(names[_name_member(each)]),
            Text(each.host),
            *(Text(processes[each.process]) for _ in process_columns),
            Text(directories[each.directory]),
            *(Text(tags) for _ in tag_columns),
            "" if each.generation is None or each.generation < 0 else str(each.generation),
            _count_tasks(each),
            str(sum(lags)) if lags else "",
        )
    return table


def _count_tasks(member: MemberReport) -> str:
    """Return how many tasks a member has in each role, those without any left out."""
    counts = {
        "active": member.active,
        "standby": member.standby,
        "warm-up": member.warmup,
        "revoking": member.revoked,
    }
    return " ".join(f"{len(tasks)} {role}" for role, tasks in counts.items() if tasks) or "none"


def _build_tasks_table(report: GroupReport, names: Mapping[str, str]) -> Table:
    """Return the table of tasks: who has each, what it reads, and how far it is behind.

    Versions of a topology number their tasks each on its own: where several run, a task has its
    member's version beside it.
    """
    version_columns = ["topology"] if len(_list_versions(report)) > 1 else []
    table = create_table(*version_columns, "task", "role", "member", "reads")
    table.add_column("lag", justify="right", overflow="fold")
    rows: list[tuple[str, tuple[int, ...], list[str]]] = []

    def add_row(member: MemberReport, task: str, role: str, reads: str, lag: str) -> None:
        version = member.topology[:_VERSION_CHARS] if version_columns else ""
        cells = [version] * len(version_columns)
        cells += [task, role, names[_name_member(member)], reads, lag]
        rows.append((version, tuple(map(int, task.split("_"))), cells))

    for each in report.members:
        for active in each.active:
            reads = ", ".join(_name_partition(partition) for partition in active.partitions)
            add_row(each, active.task, "active", reads, _format_lag(active.lag))
        for role, copies in (("standby", each.standby), ("warm-up", each.warmup)):
            for copy in copies:
                add_row(each, copy.task, role, "changelogs", _format_standby_lag(copy))
    for _, _, cells in sorted(rows):
        table.add_row(*map(Text, cells))
    return table


def _name_partition(partition: PartitionLag) -> str:
    return f"{partition.topic}[{partition.partition}]"


def _format_lag(lag: int | None) -> str:
    return "unknown" if lag is None else str(lag)


def _format_standby_lag(copy: StandbyTask) -> str:
    return "unknown" if copy.lag_max is None else f"≤ {copy.lag_max}"


def _list_notes(report: GroupReport) -> Iterator[str]:
    """Yield a line for each thing that is wrong, or about to change."""
    if not report.members:
        yield "no worker runs; it goes on at the committed offsets when one starts"
    elif report.protocol == STREAMS and report.state == _NOT_READY:
        yield from _list_topic_notes(report)
    elif report.state != STABLE and report.protocol != STREAMS:
        yield "in a rebalance brokers don't tell the tasks: look again in a moment"
    for each in report.members:
        name = _name_member(each)
        if each.problem:
            yield f"{name} is to end: {each.problem}"
        if each.rejoin_ms:
            yield f"tasks warm up: {name} joins again after {each.rejoin_ms} ms to move them"
    if report.unassigned:
        yield f"read by no member: {_list_unassigned(report.unassigned)}"
    versions = len(_list_versions(report))
    if versions > 1:
        yield (
            f"{versions} versions of the topology run side by side: each numbers its tasks itself, "
            "so that equal numbers may be different tasks"
        )


def _list_topic_notes(report: GroupReport) -> Iterator[str]:
    """Yield a line for each reason in topics for which a streams group may not be ready."""
    inputs, internal = report.missing_topics, report.missing_internal_topics
    if inputs and report.has_run:
        yield (
            f"source topics {', '.join(inputs)} are missing, and may have been read before: topics "
            "that are created again are other ones, and need as many partitions as the former had; "
            f"{format_command('doctor')} tells how to go on (see MR-035)"
        )
    elif inputs:
        commands = " and ".join(
            format_command("create-topics", topic, "--partitions", "NUMBER") for topic in inputs
        )
        yield f"source topics {', '.join(inputs)} are missing: create them with {commands}"
    elif internal:
        yield f"internal topics {', '.join(internal)} are missing: the broker creates them"
    if report.hidden_topics:
        names = ", ".join(report.hidden_topics)
        yield f"this user may not describe {names}: whether they are there is not known"
    if not (inputs or internal or report.hidden_topics):
        yield (
            "topics have wrong numbers of partitions, or the broker has not looked since a missing "
            "one was created: the log of each worker names them"
        )


def _list_versions(report: GroupReport) -> set[str]:
    """Return the fingerprints of the topologies that members run."""
    return {each.topology for each in report.members if each.topology}


def _list_unassigned(partitions: Iterable[PartitionLag]) -> str:
    return ", ".join(
        f"{_name_partition(each)} (lag {_format_lag(each.lag)})" for each in partitions
    )
