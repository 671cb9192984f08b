"""Define the command `millrace group reset`: let an application process its inputs anew.

What it does is what `kafka-streams-application-reset` and `KafkaStreams.cleanUp()` do together, in
this order, so that a worker that starts in the middle is refused:

    1. the internal topics are deleted: changelogs, repartition topics, foreign-key joins' topics.
       A worker misses the changelogs on which the committed offsets rest
    2. the committed offsets are marked: from here on a worker is told to reset again
    3. the local state is removed, under the locks of all workers and tasks of this machine
    4. the group is deleted with all of its offsets; brokers refuse that while it has members
    5. offsets of the inputs are committed

Each step finds what is left to do, so that a reset that was interrupted is run again. Between 4 and
5 nothing is left of the application, which would begin as `auto_offset_reset` says.

The ledger stays: it says what transactions wrote, and they remain written. State on other machines
needs no removal: a worker empties a store whose changelog is another one now.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from state.cleanup import lock_application
from streams.app import App, import_app
from streams.command_lines import format_command, note_invocation
from streams.command_options import (
    ApplicationArgument,
    BootstrapServers,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    StateDir,
    Yes,
)
from streams.commands.cluster_clients import (
    ClusterClients,
    connect_clients,
    exit_on_cluster_error,
    load_command_config,
)
from streams.commands.internal_topics import (
    InternalTopics,
    find_internal_topics,
)
from streams.commands.leftover_topics import describe_kept_topics, find_own_leftovers
from streams.commands.offset_positions import LogPosition, fetch_offsets, parse_position
from streams.commands.output import print_message, print_rows
from streams.commands.topics_command import require_confirmation
from streams.common.names import check_application_id
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import ConfigError
from streams.ledger import ledger_topic
from streams.membership.application_group import fetch_group_description
from streams.membership.group_offsets import check_groups_listed, fetch_group_offsets
from streams.processes.embedded import refuse_application_of_broker_directory
from streams.runtime.offsets.offset_metadata import RESET_BEGUN, RESET_DONE
from streams.settings.command_line import read_connection_option
from streams.settings.config import StreamsConfig
from streams.topology.resolve import resolve_topology


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """Holds the changes of a reset: offsets by partition (now and then), topics, a directory."""

    application_id: str
    offsets: Mapping[Partition, tuple[int | None, int]]
    topics: list[str]
    committed: Mapping[Partition, int]
    """The offsets that are committed now, also of internal topics."""
    state_path: Path | None

    def list_rows(self) -> list[dict[str, Any]]:
        """Return a row for each change."""
        rows: list[dict[str, Any]] = [
            _create_reset_row("set offset", str(partition), now, then)
            for partition, (now, then) in sorted(self.offsets.items())
        ]
        rows += [_create_reset_row("delete topic", topic) for topic in sorted(self.topics)]
        if self.state_path is not None:
            rows.append(_create_reset_row("remove state", str(self.state_path)))
        return rows


def reset(
    app: ApplicationArgument,
    to: Annotated[
        str,
        typer.Option(
            metavar="POSITION",
            help="Where the inputs are read from: beginning, end, a time as 2026-11-25T10:00 or "
            "@1764064800000 (ms since 1970), or how long ago, as 2h.",
        ),
    ] = "beginning",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be changed, and change nothing.")
    ] = False,
    leftovers: Annotated[
        bool,
        typer.Option(
            "--leftovers",
            help="Delete also internal topics that the topology does not have any more, and that "
            "were certainly the application's. Others that may be are listed.",
        ),
    ] = False,
    yes: Yes = False,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Let an application begin anew: offsets, internal topics and local state.

    The offsets of its inputs are set, its changelogs and repartition topics deleted, and its state
    on this machine removed. What it has written to its outputs stays. While a worker of it runs
    only a dry run is possible. By the application id alone, the inputs are the topics for which it
    has committed offsets, and only topics that are certainly its own are deleted.
    """
    with exit_on_cluster_error():
        position = parse_position(to, "--to")
        if position.kind == "offset":
            raise ConfigError(f"--to {to!r}: partitions differ; give beginning, end or a time")
        found, settings = resolve_application(app, config, bootstrap_servers, state_dir, connection)
        application_id = check_application_id(app) if found is None else found.application_id
        refuse_application_of_broker_directory(settings, application_id)
        clients = connect_clients(settings)
        if not dry_run:
            require_no_members(clients, application_id, is_known=found is not None)
        path = settings.state_dir / application_id
        locks: AbstractContextManager[None] = nullcontext() if dry_run else lock_application(path)
        with locks:
            found_topics = _find_topics_to_delete(
                clients, application_id, found, path, leftovers=leftovers, is_locked=not dry_run
            )
            plan = _plan_reset(clients, application_id, found, position, path, found_topics.own)
            rows = plan.list_rows()
            print_rows(("change", "what", "now", "then"), rows, as_json=json)
            if found_topics.undecided:
                undecided = found_topics.undecided
                if found is None and not dry_run:
                    raise ConfigError(_explain_undecided_topics(undecided))
                _print_undecided_topics(undecided, is_known=found is not None, is_decided=leftovers)
            if dry_run:
                print_message("nothing was changed: --dry-run")
                return
            require_confirmation(f"Reset {application_id!r} on {clients.servers} so?", yes=yes)
            _carry_out_reset(clients, plan)
            print_message(
                f"{application_id} was reset on {clients.servers}; remove {path} on every other "
                "machine before a worker starts there"
            )


def _create_reset_row(
    change: str, subject: str, now: int | None = None, then: int | None = None
) -> dict[str, Any]:
    return {"change": change, "what": subject, "now": now, "then": then}


def resolve_application(
    app: str,
    config: Path | None,
    bootstrap_servers: str | None,
    state_dir: Path | None,
    connection: Path | None,
) -> tuple[App | None, StreamsConfig]:
    """Return the App, if module:variable was given, and the settings. Raises ConfigError."""
    if ":" not in app:
        note_invocation(application_id=app)
        return None, load_command_config(
            config,
            bootstrap_servers=bootstrap_servers,
            state_dir=state_dir,
            connection=connection,
        )
    note_invocation(application=app, config_file=config, connection_file=connection)
    found = import_app(app)
    flags = {"bootstrap_servers": bootstrap_servers, "state_dir": state_dir}
    given: dict[str, Any] = {name: each for name, each in flags.items() if each is not None}
    found.configure(config, **given, **read_connection_option(connection))
    return found, found.config


def require_no_members(clients: ClusterClients, application_id: str, *, is_known: bool) -> None:
    """Raise ConfigError while the group has members, or if nothing of the application is there.

    `is_known`: its topology is, so that a reset goes on also where the group is deleted already.
    """
    topics = clients.partition_counts
    description = clients.ask_brokers(
        lambda open_connection: fetch_group_description(open_connection, application_id)
    )
    if description is None:
        if is_known or any(topic.startswith(f"{application_id}-") for topic in topics):
            return
        raise ConfigError(
            f"there is no group {application_id!r} on {clients.servers}: "
            f"{format_command('group list')} shows the groups; is the application id right?"
        )
    if description.members:
        names = ", ".join(each.instance_id or each.member_id for each in description.members)
        count = len(description.members)
        raise ConfigError(
            f"the group {application_id!r} has {count} member{'s'[: count != 1]} ({names}): end "
            "all workers first; one that was killed is a member until its session_timeout_ms is "
            "over"
        )


def _plan_reset(
    clients: ClusterClients,
    application_id: str,
    app: App | None,
    position: LogPosition,
    state_path: Path,
    internal: list[str],
) -> ResetPlan:
    """Plan a reset: the offsets to commit and the topics to delete (`internal`)."""
    counts = clients.partition_counts
    committed = _fetch_committed(clients, application_id)
    if app is None:
        inputs = {each.topic for each in committed} - {*internal, ledger_topic(application_id)}
    else:
        inputs = set(resolve_topology(app.topology(), counts).input_topics)
    partitions = [
        each for topic in sorted(inputs & counts.keys()) for each in clients.list_partitions(topic)
    ]
    offsets = fetch_offsets(clients.admin, partitions, position)
    return ResetPlan(
        application_id,
        {
            each: (committed[each].offset if each in committed else None, offsets[each])
            for each in partitions
        },
        internal,
        {p: held.offset for p, held in committed.items() if p.topic in counts},
        state_path if state_path.is_dir() else None,
    )


def _carry_out_reset(clients: ClusterClients, plan: ResetPlan) -> None:
    """Make the changes of a plan, in the order of the module's description."""
    admin, group = clients.cluster_admin, plan.application_id
    offsets = {partition: then for partition, (_, then) in plan.offsets.items()}
    admin.delete_topics(plan.topics)
    kept = {p: at for p, at in plan.committed.items() if p.topic not in plan.topics}
    admin.set_group_offsets(group, offsets | kept, RESET_BEGUN)
    if plan.state_path is not None:
        try:
            shutil.rmtree(plan.state_path)
        except OSError as error:
            raise ConfigError(
                f"{plan.state_path} can't be removed ({error.strerror}): remove it, and reset again"
            ) from error
    admin.delete_group(group)
    admin.set_group_offsets(group, offsets, RESET_DONE)


def _find_topics_to_delete(
    clients: ClusterClients,
    application_id: str,
    app: App | None,
    state_path: Path,
    *,
    leftovers: bool,
    is_locked: bool,
) -> InternalTopics:
    """Find the internal topics to delete, and those that may be another application's.

    With `leftovers` the first include all others that were certainly this one's, and that no other
    group or state directory claims. Raises ConfigError without the application's topology,
    AuthorizationError where not all groups would be listed.
    """
    counts = clients.partition_counts
    if not leftovers:
        if app is not None:
            return find_internal_topics(application_id, counts, topology=app.topology())
        committed = _fetch_committed(clients, application_id)
        return find_internal_topics(application_id, counts, committed=committed)
    if app is None:
        raise ConfigError(
            f"--leftovers needs the application as MODULE:APP: by the id {application_id!r} alone "
            "its topics can't be told from those of others"
        )
    clients.ask_brokers(
        lambda open_connection: check_groups_listed(open_connection, [f"{application_id}-"])
    )
    others = {each.group for each in clients.list_groups()}
    state_dir = clients.config.state_dir
    others |= {path.name for path in state_dir.iterdir()} if state_dir.is_dir() else set()
    found = find_internal_topics(application_id, counts, others, topology=app.topology())
    committed = _fetch_committed(clients, application_id)
    left = find_own_leftovers(
        clients, application_id, found.undecided, committed, state_path, is_locked=is_locked
    )
    undecided = [topic for topic in found.undecided if topic not in left]
    return InternalTopics([*found.own, *left], undecided)


def _print_undecided_topics(topics: list[str], *, is_known: bool, is_decided: bool) -> None:
    """Print the topics that stay, which may be this application's; `is_known`: its topology is."""
    if not is_known:
        print_message(_explain_undecided_topics(topics))
        return
    for line in describe_kept_topics(topics, is_decided=is_decided):
        print_message(line)


def _explain_undecided_topics(topics: list[str]) -> str:
    """Return the message on topics that, by their names, may be this application's or another's."""
    return (
        f"the application id alone does not tell whose these topics are: {', '.join(topics)}. Give "
        "the application as MODULE:APP, which deletes the topics of its topology, and no others"
    )


def _fetch_committed(
    clients: ClusterClients, application_id: str
) -> Mapping[Partition, OffsetAndMetadata]:
    """Fetch all committed offsets of the application's group."""
    committed = clients.ask_brokers(
        lambda open_connection: fetch_group_offsets(
            open_connection, application_id, None, require_stable=False
        )
    )
    return committed.offsets
