"""Define the command `millrace group restore-offsets`: commit the offsets that state rests on.

An application is refused whose committed offsets don't account for its state
(`streams.runtime.offset_proof`). Two things are known to be right, and nothing is guessed:

    what                proves an offset
    the ledger          the last transaction of a task names the offsets that it committed; the
                        task's changelogs have no committed record of a later one, and the input
                        is not another topic of the same name
    a person (--accept) takes the offsets that are committed now, as a tool has set them

They are committed with the ends of the changelogs in their metadata, as by the application itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import typer

from streams.app import App
from streams.command_lines import format_command
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
)
from streams.commands.output import print_message, print_rows
from streams.commands.reset_command import find_application, require_no_members
from streams.commands.topics_command import confirm
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import ConfigError
from streams.ledger import decode, ledger_topic
from streams.membership.group_offsets import fetch_group_offsets
from streams.runtime.offset_metadata import (
    decode_metadata,
    has_metadata_of_streams,
    has_positions,
    replace_positions,
)
from streams.runtime.offset_proof import is_lost
from streams.runtime.topic_ids import fetch_topic_id_hashes
from streams.topology.build import Topology


@dataclass(frozen=True, slots=True)
class TaskInputs:
    """Holds what one task reads, with its changelogs by store."""

    name: str
    partitions: list[Partition]
    changelogs: dict[str, Partition]


@dataclass(slots=True)
class LedgerOffsets:
    """Holds what the ledger says last of each input, and of each partition that was written."""

    offsets: dict[Partition, int] = field(default_factory=dict)
    written_ends: dict[Partition, int] = field(default_factory=dict)
    topic_ids: dict[Partition, int | None] = field(default_factory=dict)
    """The hash of the id that each input's topic had; None where no entry names it."""


@dataclass(frozen=True, slots=True)
class RestoredOffset:
    """Describes one input: its offset now, the proven one if there is one, and the proof."""

    partition: Partition
    now: int | None
    then: int | None
    proof: str
    metadata: str = ""


def restore_offsets(
    app: ApplicationArgument,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Take the offsets that are committed now, which a tool has set: records that they "
            "skip are left out, and records that they go back to count again.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be committed, and commit nothing.")
    ] = False,
    yes: Yes = False,
    json: JsonOutput = False,
    bootstrap_servers: BootstrapServers = None,
    state_dir: StateDir = None,
    config: ConfigFile = None,
    connection: ConnectionFile = None,
) -> None:
    """Commit offsets that are gone, as far as they can be proven.

    For an application that is refused because its state is there and its offsets are not: they have
    expired, or were deleted or set by a tool. With ledger=True the ledger proves them. Give the
    application as MODULE:APP. While a worker of it runs only a dry run is possible.
    """
    with exit_on_cluster_error():
        found, settings = find_application(app, config, bootstrap_servers, state_dir, connection)
        if found is None:
            raise ConfigError(f"give the application as MODULE:APP: the id {app!r} names no stores")
        clients = connect_clients(settings)
        application_id = found.application_id
        if not dry_run:
            require_no_members(clients, application_id, is_known=True)
        plan = list(_plan_offsets(clients, found, accept=accept))
        rows = [
            {"input": str(each.partition), "now": each.now, "then": each.then, "proof": each.proof}
            for each in plan
        ]
        print_rows(("input", "now", "then", "proof"), rows, as_json=json)
        proven = {each.partition: each for each in plan if each.then is not None}
        if not plan:
            print_message("every input of a task with state has an offset that accounts for it")
            return
        if unproven := [str(each.partition) for each in plan if each.then is None]:
            raise ConfigError(
                f"nothing proves an offset for {', '.join(unproven)}, so nothing was committed: "
                "set offsets with Kafka's tools if you know them, and take them with --accept; or "
                f"start over with {format_command('group reset')}"
            )
        if dry_run:
            print_message("nothing was changed: --dry-run")
            return
        confirm(f"Commit these offsets for {application_id!r} on {clients.servers}?", yes=yes)
        clients.cluster_admin.set_group_offsets(
            application_id,
            {partition: each.then or 0 for partition, each in proven.items()},
            {partition: each.metadata for partition, each in proven.items()},
        )
        print_message(f"the offsets of {application_id} are committed: its workers may start")


def _plan_offsets(clients: ClusterClients, app: App, *, accept: bool) -> Iterator[RestoredOffset]:
    """Yield each input of a task with stores whose offset does not account for its state."""
    application_id = app.application_id
    committed = fetch_group_offsets(
        clients.open_connection, application_id, None, require_stable=True
    )
    if committed.pending:
        raise ConfigError(f"a transaction is still open on {committed.pending[0]}: try again later")
    ledger: LedgerOffsets | None = None
    for task in _list_tasks(clients, app.topology()):
        ends = clients.admin.fetch_latest_offsets(list(task.changelogs.values()))
        positions = {store: ends[changelog] for store, changelog in task.changelogs.items()}
        mine = [committed.offsets[p] for p in task.partitions if p in committed.offsets]
        known = [decode_metadata(held.metadata) for held in mine if has_positions(held.metadata)]
        for partition in task.partitions:
            held = committed.offsets.get(partition)
            if held is None and not is_lost(partition.topic, known):
                continue  # an input that was added: it begins as `auto_offset_reset` says
            reason = _find_reason(clients, task, held, is_exact=app.config.exactly_once)
            if reason is None:
                continue
            if accept and held is not None:
                metadata = replace_positions(held.metadata, positions)
                proof = f"accepted: {reason}"
                yield RestoredOffset(partition, held.offset, held.offset, proof, metadata)
                continue
            if ledger is None:
                ledger = _read_ledger(clients, application_id)
            then, proof = _prove_by_ledger(clients, task, partition, ledger)
            if then is None and held is None and not task.changelogs:
                continue  # whether it has any state is known on its machine alone
            text = replace_positions("", positions)
            yield RestoredOffset(
                partition, None if held is None else held.offset, then, f"{reason}; {proof}", text
            )


def _list_tasks(clients: ClusterClients, topology: Topology) -> Iterator[TaskInputs]:
    """Yield the tasks that have stores. Raises ConfigError for topics that are not there."""
    counts = clients.partition_counts
    for sub in topology.subtopologies:
        stores = [spec.name for spec in sub.stores if spec.logged and spec.source_topic is None]
        if not sub.stores:
            continue
        if missing := [topic for topic in sub.sources if topic not in counts]:
            raise ConfigError(
                f"there is no topic {missing[0]!r}: create it "
                f"({format_command('create-topics', missing[0])}), or start over with "
                f"{format_command('group reset')}"
            )
        for number in range(max(counts[topic] for topic in sub.sources)):
            changelogs = {
                name: Partition(topology.restore_topic_of(name), number) for name in stores
            }
            for changelog in changelogs.values():
                if number >= counts.get(changelog.topic, 0):
                    raise ConfigError(
                        f"there is no changelog {changelog}: the state is gone, and no offset "
                        f"accounts for it; start over with {format_command('group reset')}"
                    )
            inputs = [Partition(t, number) for t in sorted(sub.sources) if number < counts[t]]
            yield TaskInputs(f"{sub.number}_{number}", inputs, changelogs)


def _find_reason(
    clients: ClusterClients, task: TaskInputs, held: OffsetAndMetadata | None, *, is_exact: bool
) -> str | None:
    """Return why the offset of an input does not account for the task's state; None if it does.

    Without `is_exact`, at least once, positions are not compared: a changelog may be ahead.
    Raises ConfigError for an offset that a reset has marked.
    """
    metadata = decode_metadata("" if held is None else held.metadata)
    if metadata.is_reset_begun:
        raise ConfigError(f"a reset was begun, and not ended (task {task.name}): reset again")
    is_own = held is not None and has_metadata_of_streams(held.metadata)
    if not is_own and not task.changelogs:
        return "no offset" if held is None else "set by a tool"
    if is_own and (not is_exact or metadata.is_at_least_once):
        return None
    starts: dict[Partition, int] = {}
    for store, changelog in task.changelogs.items():
        known = metadata.position_of_store(store)
        if is_own and known is None:
            continue  # of Kafka Streams, or of a version without the store
        starts[changelog] = known or 0
    found = _find_committed_record(clients, starts)
    if found is None:
        return None
    if held is None:
        return "no offset"
    return f"older than {found}" if is_own else "set by a tool"


def _prove_by_ledger(
    clients: ClusterClients, task: TaskInputs, partition: Partition, ledger: LedgerOffsets
) -> tuple[int | None, str]:
    """Return the offset that the ledger proves for an input, or None, and what was found."""
    offset = ledger.offsets.get(partition)
    if offset is None:
        return None, "no ledger has it"
    then, now = (
        ledger.topic_ids.get(partition),
        fetch_topic_id_hashes(clients.admin, [partition.topic]).get(partition.topic),
    )
    if None not in (then, now) and then != now:
        return None, (
            f"the ledger's offset {offset} is of another topic of the same name: "
            f"{partition.topic!r} was deleted and created again"
        )
    starts = {each: ledger.written_ends.get(each, 0) for each in task.changelogs.values()}
    later = _find_committed_record(clients, starts)
    if later is not None:
        return None, f"the ledger does not know who wrote {later}"
    return offset, "by the ledger"


def _find_committed_record(clients: ClusterClients, starts: Mapping[Partition, int]) -> str | None:
    """Return the place of the first committed record at or after the given offsets, if any."""
    partitions = list(starts)
    if not partitions:
        return None
    earliest = clients.admin.fetch_earliest_offsets(partitions)
    ends = clients.admin.fetch_last_stable_offsets(partitions)
    positions = {p: max(starts[p], earliest[p]) for p in partitions}
    reader = clients.create_reader(committed_only=True)
    try:
        for message in reader.read_records(positions, ends):
            return f"{message.topic()}[{message.partition()}]@{message.offset()}"
    finally:
        reader.close()
    return None


def _read_ledger(clients: ClusterClients, application_id: str) -> LedgerOffsets:
    """Read the whole ledger, if there is one; its last record of a task says where the task is."""
    found = LedgerOffsets()
    topic = ledger_topic(application_id)
    if topic not in clients.partition_counts:
        return found
    partitions = clients.list_partitions(topic)
    starts = clients.admin.fetch_earliest_offsets(partitions)
    ends = clients.admin.fetch_last_stable_offsets(partitions)
    reader = clients.create_reader(committed_only=True)
    try:
        for message in reader.read_records(starts, ends):
            try:
                transaction = decode(message.value() or b"")
            except ValueError as error:
                raise ConfigError(f"{topic} at {message.offset()}: {error}") from error
            for offsets in transaction.inputs.values():
                found.offsets |= offsets
                found.topic_ids |= {p: transaction.topic_ids.get(p.topic) for p in offsets}
            for partition, runs in transaction.written.items():
                end = max(run.last for run in runs) + 1
                found.written_ends[partition] = max(end, found.written_ends.get(partition, 0))
    finally:
        reader.close()
    return found
