"""Define `millrace plan`: tell what a new version means for the state that the old one has left.

The old version is a file that `--save` has written. The comparison itself is
`streams.topology.compare_versions`; each `plan_*` module beside this one reviews one thing on a
cluster, or prints.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from streams.app import import_app
from streams.command_lines import format_command, note_invocation
from streams.command_options import (
    AppArgument,
    ConfigFile,
    ConnectionFile,
    JsonOutput,
    StateDir,
    exit_on_user_error,
)
from streams.commands.cluster_clients import BROKER_WAIT_S, ClusterClients
from streams.commands.output import print_json_line
from streams.commands.plan_changelogs import NOT_REVIEWED, ChangelogReview, find_unrestorable_stores
from streams.commands.plan_group import StreamsGroupReview, review_streams_group
from streams.commands.plan_inputs import InputReview, review_inputs
from streams.commands.plan_output import build_plan_output
from streams.commands.plan_printing import print_plan
from streams.commands.plan_topics import (
    TopicOutcome,
    TopicReview,
    list_review_lines,
    review_internal_topics,
)
from streams.commands.tables import create_console
from streams.common.exit_status import ExitStatus
from streams.common.topic_partitions import CommittedOffsets
from streams.errors import ConfigError
from streams.membership.group_offsets import fetch_group_offsets
from streams.processes.cluster import find_or_start_cluster
from streams.runtime.assigning.topology_to_send import describe_sent_settings
from streams.runtime.clients import KafkaClientSupplier
from streams.settings.command_line import read_connection_option
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from streams.topology.compare_versions import UpgradePlan, compare_topologies
from streams.topology.description import (
    TopologyDescription,
    describe_topology,
    description_from_json,
    description_to_json,
)
from streams.topology.state_effects import StateOutcome
from streams.topology.streams_group_topology import find_sent_differences


def plan(
    app: AppArgument,
    against: Annotated[
        Path | None, typer.Option(help="What --save wrote of the version that ran.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write what this version is.")] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC=NUMBER", help="Of an input topic, as often as needed."),
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(help="Ask this Kafka, or 'embedded', for the topics' partitions."),
    ] = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    rolling: Annotated[
        bool, typer.Option("--rolling", help="The new version is to run beside the old one.")
    ] = False,
    connection: ConnectionFile = None,
    json: JsonOutput = False,
) -> None:
    """Tell what a new version of an application means for the state that the old one has left.

    With --bootstrap-servers also what a start does with internal topics that exist, which
    changelogs can't rebuild their stores, whether a streams group that is there takes it, and which
    of its topics are missing. Ends with status 1 if state would be lost, 2 if the comparison can't
    be made, and 4 if a start would be refused for the settings of an internal topic, since inputs
    that meet by key have other partition counts, since a changelog can't rebuild its store, or
    since the streams group has another topology or can't be joined; with --rolling also with 3 if
    no state would be lost, but the two versions may not run side by side.
    """
    with exit_on_user_error():
        note_invocation(application=app, config_file=config, connection_file=connection)
        if against is None and save is None and bootstrap_servers is None:
            raise ConfigError(
                "plan needs --against FILE to compare with, --save FILE to write, or "
                "--bootstrap-servers to look at internal topics"
            )
        found = import_app(app)
        given = {"bootstrap_servers": bootstrap_servers, "state_dir": state_dir}
        given = {name: value for name, value in given.items() if value is not None}
        found.configure(config, **given, **read_connection_option(connection))
        topology = found.topology()
        new = replace(
            describe_topology(topology),
            sent_settings=describe_sent_settings(topology, found.config),
        )
        old = None if against is None else load_topology_description(against, new.application_id)
        inputs = [*new.input_topics, *(old.input_topics if old else ())]
        counts: dict[str, int] = {}
        reviews: list[TopicReview] = []
        changelogs, group, servers = NOT_REVIEWED, StreamsGroupReview(), None
        if bootstrap_servers is not None:
            servers, counts, reviews, changelogs, group = _review_cluster(topology, found.config)
        # A global table reads however many partitions its topic has: that changes nothing.
        global_topics = [table.topic for table in topology.global_tables]
        counts |= parse_partitions(partitions or [], [*inputs, *global_topics])
        dead_letter_topics = found.config.handlers.dead_letter_topics()
        of_inputs = review_inputs(topology, counts, dead_letter_topics, servers)
        result = None if old is None else _compare_versions(old, new, counts, found.config)
        refused = list_rebuilt_stores(result) & changelogs.refusals.keys()
        is_refused = bool(of_inputs.conflict or refused or group.refusal)
        status = _choose_exit_status(result, reviews, is_refused=is_refused, is_rolling=rolling)
        _print_plan(result, of_inputs, reviews, changelogs, group, status, as_json=json)
        if save is not None:
            save_topology_description(save, new, counts)
    if status:
        raise typer.Exit(status)


def _compare_versions(
    old: TopologyDescription,
    new: TopologyDescription,
    partition_counts: Mapping[str, int],
    config: StreamsConfig,
) -> UpgradePlan:
    """Compare two versions, with what a group of the streams protocol holds against the new one.

    With `auto` the group may be one, unless brokers can't be told the topology.
    """
    result = compare_topologies(old, new, partition_counts)
    is_auto = config.group_protocol == "auto"
    if config.group_protocol == "classic" or (is_auto and config.task_assignor is not None):
        return result
    differences = find_sent_differences(old, new)
    return replace(result, sent_differences=differences, is_streams_group_certain=not is_auto)


def _print_plan(
    result: UpgradePlan | None,
    of_inputs: InputReview,
    reviews: list[TopicReview],
    changelogs: ChangelogReview,
    group: StreamsGroupReview,
    status: int,
    *,
    as_json: bool,
) -> None:
    """Print what was found of versions, inputs and topics, or one object of JSON."""
    of_changelogs = changelogs.list_lines(list_rebuilt_stores(result))
    if as_json:
        print_json_line(build_plan_output(result, of_inputs, reviews, of_changelogs, group, status))
        return
    if result is not None:
        print_plan(result, create_console())
    of_topics = (*list_review_lines(reviews), *of_changelogs)
    for line in (*of_inputs.list_lines(), *group.list_lines(), *of_topics):
        typer.echo(line)


class _ClusterReview(NamedTuple):
    """Represents a cluster as a plan sees it: topics, changelogs of stores, a streams group."""

    bootstrap_servers: str
    partition_counts: dict[str, int]
    internal_topics: list[TopicReview]
    changelogs: ChangelogReview
    group: StreamsGroupReview


def _review_cluster(topology: Topology, config: StreamsConfig) -> _ClusterReview:
    """Return the addresses, each topic's number of partitions, and reviews of what is there.

    Raises ConfigError if no broker answers.
    """
    note_invocation(bootstrap_servers=config.bootstrap_servers, state_dir=config.state_dir)
    cluster = find_or_start_cluster(config)
    servers = cluster.bootstrap_servers
    admin = KafkaClientSupplier("millrace", config, servers, cluster.security).create_admin()
    counts = admin.fetch_partition_counts_at_start(BROKER_WAIT_S)
    clients = ClusterClients(config, cluster)

    def fetch_committed() -> CommittedOffsets:
        return clients.ask_brokers(
            lambda connect: fetch_group_offsets(
                connect, topology.application_id, None, require_stable=False
            )
        )

    now_ms = int(time.time() * 1_000)
    return _ClusterReview(
        servers,
        counts,
        review_internal_topics(topology, config, admin, servers, counts),
        find_unrestorable_stores(topology, config, clients.admin, fetch_committed, counts, now_ms),
        review_streams_group(topology, config, clients),
    )


def _choose_exit_status(
    result: UpgradePlan | None,
    reviews: Iterable[TopicReview],
    *,
    is_refused: bool,
    is_rolling: bool,
) -> ExitStatus:
    """Return the exit status of `millrace plan` where the comparison could be made.

    `is_refused`: a start would be for another reason than the settings of internal topics.
    """
    if result is not None and result.loses_state:
        return 1
    if is_refused or any(each.outcome is TopicOutcome.REFUSED for each in reviews):
        return 4
    return 3 if is_rolling and result is not None and not result.may_run_side_by_side else 0


def list_rebuilt_stores(plan: UpgradePlan | None) -> set[str]:
    """Return the stores that a new version rebuilds from their changelogs; none without a plan."""
    changes = () if plan is None else plan.changes
    return {each.name for each in changes if each.worst_outcome is StateOutcome.RESTORED}


def load_topology_description(path: Path, application_id: str) -> TopologyDescription:
    """Load a topology description that `--save` has written.

    Raises ConfigError saying what is wrong with the file.
    """
    name = repr(str(path))
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{name} can't be read ({error.strerror}): save a description of the version that "
            f"runs with {format_command('plan', '--save', str(path))}"
        ) from None
    found = description_from_json(text, name)
    if found.application_id != application_id:
        raise ConfigError(
            f"{name} describes the application {found.application_id!r}, and this one is "
            f"{application_id!r}, which has topics, offsets and directories of its own"
        )
    return found


def save_topology_description(
    path: Path, description: TopologyDescription, partitions: Mapping[str, int]
) -> None:
    """Write a topology description with the known partition counts of its inputs to a file.

    Raises ConfigError.
    """
    inputs = {t: partitions[t] for t in description.input_topics if t in partitions}
    try:
        path.write_text(description_to_json(replace(description, partitions=inputs)) + "\n")
    except OSError as error:
        raise ConfigError(f"{str(path)!r} can't be written ({error.strerror})") from None


def parse_partitions(pairs: Iterable[str], input_topics: Iterable[str]) -> dict[str, int]:
    """Parse the TOPIC=NUMBER pairs of `--partitions`, which name topics of `input_topics`.

    Raises ConfigError.
    """
    known = sorted(set(input_topics))
    found: dict[str, int] = {}
    for pair in pairs:
        topic, _, count = pair.rpartition("=")
        if not topic or not count.isascii() or not count.isdigit() or int(count) < 1:
            raise ConfigError(f"--partitions {pair!r} is not TOPIC=NUMBER, as in lines=4")
        if topic not in known:
            close = difflib.get_close_matches(topic, known, n=1)
            raise ConfigError(
                f"--partitions {pair!r}: {topic!r} is no input topic of this application"
                + (
                    f"; did you mean {close[0]!r}?"
                    if close
                    else f", which reads {', '.join(known) or 'none'}"
                )
            )
        found[topic] = int(count)
    return found
