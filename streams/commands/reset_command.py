"""Define the command `millrace group reset`: let an application process its inputs anew.

What it does is what `kafka-streams-application-reset` and `KafkaStreams.cleanUp()` do together, in
this order, so that a worker that starts in the middle is refused or finds nothing:

    1. the group is deleted with all of its offsets; brokers refuse that while it has members
    2. the internal topics are deleted: changelogs, repartition topics, foreign-key joins' topics
    3. the local state is removed, under the locks of all workers and tasks of this machine
    4. offsets of the inputs are committed

The ledger stays: it says what transactions wrote, and they remain written. State on other machines
needs no removal: a worker empties a store whose changelog is another one now.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from state.cleanup import lock_application
from streams.app import App, import_app
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
from streams.commands.offset_positions import LogPosition, fetch_offsets, parse_position
from streams.commands.output import print_message, print_rows
from streams.commands.topics_command import confirm
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import ledger_topic
from streams.membership.group_description import fetch_group_description
from streams.membership.group_offsets import fetch_group_offsets
from streams.settings.command_line import read_connection
from streams.settings.config import StreamsConfig

_INTERNAL_TOPIC = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)"
)
"""The internal topics' names after the application id, as in Kafka Streams' StreamsResetter."""


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """Holds what a reset changes: offsets by partition (now and then), topics, and a directory."""

    application_id: str
    offsets: Mapping[Partition, tuple[int | None, int]]
    topics: list[str]
    state_path: Path | None

    def list_rows(self) -> list[dict[str, Any]]:
        """Return a row for each change."""
        rows: list[dict[str, Any]] = [
            _row("set offset", str(partition), now, then)
            for partition, (now, then) in sorted(self.offsets.items())
        ]
        rows += [_row("delete topic", topic) for topic in self.topics]
        if self.state_path is not None:
            rows.append(_row("remove state", str(self.state_path)))
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
    has committed offsets.
    """
    with exit_on_cluster_error():
        position = parse_position(to, "--to")
        if position.kind == "offset":
            raise ConfigError(f"--to {to!r}: partitions differ; give beginning, end or a time")
        found, settings = find_application(app, config, bootstrap_servers, state_dir, connection)
        application_id = app if found is None else found.application_id
        clients = connect_clients(settings)
        if not dry_run:
            _require_no_members(clients, application_id)
        path = settings.state_dir / application_id
        locks: AbstractContextManager[None] = nullcontext() if dry_run else lock_application(path)
        with locks:
            plan = _plan_reset(clients, application_id, found, position, path)
            rows = plan.list_rows()
            print_rows(("change", "what", "now", "then"), rows, as_json=json)
            if dry_run:
                print_message("nothing was changed: --dry-run")
                return
            confirm(f"Reset {application_id!r} on {clients.servers} so?", yes=yes)
            _carry_out(clients, plan)
            print_message(
                f"{application_id} was reset on {clients.servers}; remove {path} on every other "
                "machine before a worker starts there"
            )


def find_internal_topics(
    application_id: str, topics: Iterable[str], groups: Iterable[str]
) -> list[str]:
    """Return which topics are internal to an application, by their names.

    `groups` are all groups of the cluster: a topic of an application "a-b" is none of "a", though
    its name begins so.
    """
    prefix = f"{application_id}-"
    others = [f"{group}-" for group in groups if group.startswith(prefix)]
    return sorted(
        topic
        for topic in topics
        if topic.startswith(prefix)
        and _INTERNAL_TOPIC.fullmatch(topic.removeprefix(application_id))
        and not topic.startswith(tuple(others))
    )


def _row(change: str, what: str, now: int | None = None, then: int | None = None) -> dict[str, Any]:
    return {"change": change, "what": what, "now": now, "then": then}


def find_application(
    app: str,
    config: Path | None,
    bootstrap_servers: str | None,
    state_dir: Path | None,
    connection: Path | None,
) -> tuple[App | None, StreamsConfig]:
    """Return the App, if module:variable was given, and the settings. Raises ConfigError."""
    if ":" not in app:
        return None, load_command_config(
            config,
            bootstrap_servers=bootstrap_servers,
            state_dir=state_dir,
            connection=connection,
        )
    found = import_app(app)
    flags = {"bootstrap_servers": bootstrap_servers, "state_dir": state_dir}
    given: dict[str, Any] = {name: each for name, each in flags.items() if each is not None}
    found.configure(config, **given, **read_connection(connection))
    return found, found.config


def _require_no_members(clients: ClusterClients, application_id: str) -> None:
    """Raise ConfigError while the group has members, or if nothing of the application is there."""
    topics = clients.partition_counts
    description = fetch_group_description(clients.open_connection, application_id)
    if description is None:
        if any(topic.startswith(f"{application_id}-") for topic in topics):
            return
        raise ConfigError(
            f"there is no group {application_id!r} of the classic protocol on {clients.servers}: "
            "`millrace group list` shows the groups; is the application id right?"
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
) -> ResetPlan:
    """Find what is to be changed."""
    counts = clients.partition_counts
    committed = fetch_group_offsets(
        clients.open_connection, application_id, None, require_stable=False
    ).offsets
    groups = [each.group for each in clients.cluster_admin.list_groups()]
    internal = find_internal_topics(application_id, counts, groups)
    if app is None:
        inputs = {each.topic for each in committed} - {*internal, ledger_topic(application_id)}
    else:
        inputs = set(app.topology().input_topics)
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
        state_path if state_path.is_dir() else None,
    )


def _carry_out(clients: ClusterClients, plan: ResetPlan) -> None:
    """Make the changes of a plan, in the order of the module's description."""
    clients.cluster_admin.delete_group(plan.application_id)
    clients.cluster_admin.delete_topics(plan.topics)
    if plan.state_path is not None:
        try:
            shutil.rmtree(plan.state_path)
        except OSError as error:
            raise ConfigError(
                f"{plan.state_path} can't be removed ({error.strerror}): remove it, and reset again"
            ) from error
    offsets = {partition: then for partition, (_, then) in plan.offsets.items()}
    clients.cluster_admin.set_group_offsets(plan.application_id, offsets)
