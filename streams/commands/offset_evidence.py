"""Find what proves an offset of an input: the ledger, and the records of changelogs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.commands.cluster_clients import ClusterClients
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import decode, ledger_topic


@dataclass(frozen=True, slots=True)
class TaskInputs:
    """Holds what one task reads, with its changelogs by store."""

    name: str
    partitions: list[Partition]
    changelogs: dict[str, Partition]
    has_stores: bool = True


@dataclass(slots=True)
class LedgerOffsets:
    """Holds what the ledger says last of each input, and of each partition that was written."""

    offsets: dict[Partition, int] = field(default_factory=dict)
    written_ends: dict[Partition, int] = field(default_factory=dict)
    topic_ids: dict[Partition, int | None] = field(default_factory=dict)
    """The hash of the id that each input's topic had; None where no entry names it."""


def prove_by_ledger(
    clients: ClusterClients,
    task: TaskInputs,
    partition: Partition,
    ledger: LedgerOffsets,
    topic_ids: Mapping[str, int],
) -> tuple[int | None, str]:
    """Return the offset that the ledger proves for an input, or None, and what was found.

    `topic_ids` are the hashes of the inputs' ids now.
    """
    offset = ledger.offsets.get(partition)
    if offset is None:
        return None, "no ledger has it"
    then, now = ledger.topic_ids.get(partition), topic_ids.get(partition.topic)
    if None not in (then, now) and then != now:
        return None, (
            f"the ledger's offset {offset} is of another topic of the same name: "
            f"{partition.topic!r} was deleted and created again"
        )
    starts = {each: ledger.written_ends.get(each, 0) for each in task.changelogs.values()}
    later = find_committed_record(clients, starts)
    if later is not None:
        return None, f"the ledger does not know who wrote {later}"
    return offset, "by the ledger"


def find_committed_record(clients: ClusterClients, starts: Mapping[Partition, int]) -> str | None:
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


def read_ledger(clients: ClusterClients, application_id: str) -> LedgerOffsets:
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
