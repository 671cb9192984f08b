"""Refuse a task whose stores hold more than its committed offsets prove.

What a transaction wrote into changelogs is committed with the offsets of its inputs, whose metadata
name the changelogs' positions. So a store holds no committed record from that position on. Where it
does, or where an offset is gone, inputs would be read again on top of what they have done already:

    what is found                                        why
    no committed offset                                  expired (`offsets.retention.minutes`), or
                                                         deleted with the group or the topic
    an offset whose metadata nobody of this application  set by a tool, such as
    wrote                                                `kafka-consumer-groups --reset-offsets`
    positions behind the last committed record           an older offset was put back
    the mark of a reset that was begun                   `millrace group reset` was interrupted

It is refused only where a store proves that a commit has been: by a committed record in it or in
its changelog, or by a checkpoint that followed one. Aborted records and markers prove nothing, so
an application that died in its first transaction begins anew. An input has no offset yet, and that
is in order, if another committed offset of the group knows the task's stores and does not name it
among the inputs that it was committed with: it was added.

At least once a changelog may be ahead of the offsets after a crash, so positions are not compared,
nor are those of offsets that were committed so before the guarantee was switched;
an offset is committed before the first record is written to a changelog
(`streams.runtime.threads.commit`). Offsets that Kafka Streams has committed name no positions, and
are taken as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from streams.command_lines import format_command
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import PositionRefused, StreamsError
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.offsets.offset_metadata import (
    OffsetMetadata,
    decode_metadata,
    find_later_version,
    has_changelog_positions,
    is_streams_metadata,
)
from streams.runtime.offsets.offset_refusals import (
    describe_foreign_offsets,
    describe_missing_offsets,
    explain_untrusted_offsets,
    find_remaining_offsets,
    suggest_ways_out,
)
from streams.runtime.tasks.task_stores import TaskStores


@dataclass(frozen=True, slots=True)
class OffsetProof:
    """Says which committed records of a task's stores its committed offsets account for.

    `problem` is why they account for none, with the `ways_out`; empty if they do. `positions` are,
    for changelogs that are compared, the first offset that they don't account for.
    """

    group: str = ""
    problem: str = ""
    positions: Mapping[Partition, int] = field(default_factory=dict)
    is_reset: bool = False
    ways_out: str = ""

    def check_store(self, logged: LoggedStore) -> None:
        """Raise PositionRefused if a store holds a committed record that no offset accounts for.

        `logged.committed_end` is the end of the committed records that are known to be in it.
        """
        end = logged.committed_end
        if end <= 0:
            return
        holds = f"store {logged.store.name!r} holds records of {logged.changelog} up to {end}"
        if self.problem:
            raise PositionRefused(self._format_refusal(holds))
        known = self.positions.get(logged.changelog, end)
        if end > known:
            raise PositionRefused(
                f"the committed offsets of group {self.group!r} are older than its state: they "
                f"were committed when {logged.changelog} stood at {known}, and {holds}. Records "
                f"would count twice. {explain_untrusted_offsets()}"
            )

    def check_unlogged_store(self, name: str, *, is_written: bool) -> None:
        """Raise StreamsError if a store without a changelog was committed, and no offset is."""
        if self.is_reset and is_written:
            raise StreamsError(
                f"{self.group!r} was reset, and store {name!r} of the time before is here: remove "
                "the application's state directory on this machine"
            )
        if self.problem and is_written:
            raise StreamsError(
                self._format_refusal(f"store {name!r}, which has no changelog, is here")
            )

    def _format_refusal(self, holds: str) -> str:
        return (
            f"{self.problem}, though {holds}: read from elsewhere, the input's records would count "
            f"twice or be left out. {self.ways_out or explain_untrusted_offsets()}"
        )


UNCHECKED = OffsetProof()
"""The proof of a task that is not restored from committed offsets."""


def _refuse_later_release(group: str, texts: Mapping[Partition, str]) -> None:
    """Raise StreamsError for metadata of a later release, whose positions and times are not known.

    Without them windows that have closed would open again, and no loss would be seen.
    """
    later = {p: version for p, text in texts.items() if (version := find_later_version(text))}
    if later:
        raise StreamsError(
            f"the offsets of {_format_partitions(sorted(later))} were committed for {group!r} by a "
            f"later release of Millrace (metadata M{max(later.values())}; this one reads M2): run "
            f"that release, or begin anew with {format_command('group reset')}"
        )


def prove_offsets(
    group: str,
    partitions: Collection[Partition],
    stores: TaskStores,
    committed: Mapping[Partition, OffsetAndMetadata],
    witnesses: Mapping[Partition, OffsetAndMetadata],
    *,
    is_transactional: bool,
    deleted: Collection[Partition] = (),
    internal_topics: Collection[str] = (),
) -> OffsetProof:
    """Return which committed records the offsets of a task's inputs, `partitions`, account for.

    `witnesses` are other committed offsets of the group, looked at where no input has one: of
    inputs that an earlier version of the topology had. `deleted` are inputs that are known to be of
    topics made again, with whose former ones brokers have deleted the offsets: where they begin is
    decided elsewhere (`offset_out_of_range`). `internal_topics` are repartition topics. Raises
    StreamsError for offsets that a reset has marked and not replaced, or a later release committed.
    """
    own = {p: committed[p].metadata for p in partitions if p in committed}
    _refuse_later_release(group, own)
    if foreign := sorted(p for p, text in own.items() if not is_streams_metadata(text)):
        offsets = {p: committed[p].offset for p in foreign}
        return OffsetProof(group, describe_foreign_offsets(group, offsets))
    if any(decode_metadata(text).is_reset_begun for text in own.values()):
        raise StreamsError(
            f"a reset of {group!r} was begun, and not ended: run {format_command('group reset')} "
            "again"
        )
    is_reset = any(decode_metadata(text).is_reset for text in own.values())
    names = [name for name, each in stores.logged.items() if not each.is_source_topic]
    texts = own.values() or _list_witnesses(witnesses, partitions, names)
    known = [decode_metadata(text) for text in texts]
    missing = sorted(p for p in partitions if p not in committed)
    if lost := [p for p in missing if p not in deleted and is_offset_lost(p.topic, known)]:
        # Of a task without changelogs only its own offsets are known.
        left = find_remaining_offsets(lost, {**witnesses, **committed}) if names or own else None
        return OffsetProof(
            group,
            describe_missing_offsets(group, lost, left),
            ways_out=suggest_ways_out(lost, internal_topics, left),
        )
    positions = {
        each.changelog: committed[each.changelog].offset if each.changelog in committed else 0
        for each in stores.logged.values()
        if each.is_source_topic and each.changelog not in deleted
    }
    # Kafka Streams commits only the inputs that went on: older positions may stand beside its own.
    was_exact = is_transactional and not any(each.is_at_least_once for each in known)
    if was_exact and all(map(has_changelog_positions, texts)):
        if rewound := _find_rewound_inputs(own, names):
            return OffsetProof(
                group,
                f"the offset of {_format_partitions(rewound)} was committed by group {group!r} "
                "before those of its other inputs: an older one was put back",
            )
        for name in names:
            found = [at for each in known if (at := each.position_of_store(name)) is not None]
            if found or is_reset:
                positions[stores.logged[name].changelog] = max(found, default=0)
    return OffsetProof(group, positions=positions, is_reset=is_reset)


def is_offset_lost(topic: str, known: Collection[OffsetMetadata]) -> bool:
    """Return whether an input without a committed offset had one, by the metadata of others.

    Without others it is taken to have had one, which matters where the task has state.
    """
    return not known or any(metadata.was_committed_with(topic) for metadata in known)


def _find_rewound_inputs(
    own: Mapping[Partition, str], store_names: Collection[str]
) -> list[Partition]:
    """Return the inputs of a task whose offset is older than one that was committed with them.

    An input that a version of the topology did not have keeps an older one, and is not named.
    """
    if len(own) < 2:
        return []
    known = {partition: decode_metadata(text) for partition, text in own.items()}
    rewound = set()
    for name in store_names:
        at = {p: each.position_of_store(name) or 0 for p, each in known.items()}
        newest = known[max(at, key=lambda p: at[p])]
        last = max(at.values())
        rewound |= {p for p in at if at[p] < last and newest.was_committed_with(p.topic)}
    return sorted(rewound)


def _list_witnesses(
    committed: Mapping[Partition, OffsetAndMetadata],
    partitions: Collection[Partition],
    store_names: Collection[str],
) -> list[str]:
    """Return the metadata of committed offsets that know one of a task's stores.

    They are of inputs that the task had in an earlier version of the topology.
    """
    numbers = {partition.number for partition in partitions}
    return [
        held.metadata
        for partition, held in committed.items()
        if partition.number in numbers and _names_any_store(held.metadata, store_names)
    ]


def _names_any_store(text: str, store_names: Collection[str]) -> bool:
    """Return whether the metadata of an offset name the position of one of the stores."""
    metadata = decode_metadata(text)
    return any(metadata.position_of_store(name) is not None for name in store_names)


def _format_partitions(partitions: Collection[Partition]) -> str:
    return ", ".join(map(str, partitions))
