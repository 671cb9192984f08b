"""Check that inputs are the topics that the committed offsets count the records of.

A topic that was deleted and created again is another topic: a start is refused, where state rests
on what was read of the former one. Two things show it:

    the id of a topic in the metadata of committed offsets    is not the one that it has now
    inputs of tasks with state without a committed offset     brokers delete them with their topic

Partition counts are compared besides: state is kept by partition, and the new topic may have other
ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.runtime.offsets.offset_refusals import (
    RemainingOffsets,
    describe_missing_offsets,
    explain_lost_between_steps,
    suggest_new_topics,
    suggest_reset,
    suggest_ways_out,
)

INPUTS = "inputs"


@dataclass(frozen=True, slots=True)
class InputIdentity:
    """Holds what shows whether inputs are still the topics that were read.

    `recreated` have another id than offsets name. `lost` are partitions without an offset on which
    state rests; `left` says what the group still has. `former_counts` has, for topics of either,
    the partitions that they had, where state is kept by these. `policy` is offset_out_of_range,
    empty where it is not known.
    """

    group: str
    recreated: Collection[str]
    lost: Collection[Partition]
    left: RemainingOffsets
    internal: Collection[str]
    counts: Mapping[str, int]
    former_counts: Mapping[str, int] = field(default_factory=dict)
    policy: str = ""
    has_members: bool = False

    def list_resized(self) -> list[str]:
        """Return the topics that have another number of partitions than they had."""
        return sorted(t for t, n in self.former_counts.items() if self.counts.get(t, n) != n)


def find_recreated_topics(
    committed: Mapping[Partition, OffsetAndMetadata], topic_ids: Mapping[str, int]
) -> set[str]:
    """Return the topics of which committed offsets name another id than they have now.

    `topic_ids` are the hashes of the ids. The offset of one input names the ids of all inputs of
    its task, also of those whose own offsets are gone with their topic.
    """
    found = set()
    for held in committed.values():
        metadata = decode_metadata(held.metadata)
        found |= {
            topic
            for topic, now in topic_ids.items()
            if metadata.topic_id_hash(topic) not in (None, now)
        }
    return found


def check_input_identity(identity: InputIdentity) -> Iterator[DoctorFinding]:
    """Find inputs that were deleted and created again, and offsets that are gone with them."""
    inputs = sorted(set(identity.recreated) - set(identity.internal))
    between = sorted(set(identity.recreated) & set(identity.internal))
    goes_on = bool(identity.policy) and identity.policy != "fail"
    if inputs and goes_on and not identity.list_resized():
        yield create_fine_finding(
            INPUTS,
            f"{_name_topics(inputs)} was deleted and created again: workers go on in the new topic "
            f"as offset_out_of_range={identity.policy} says",
        )
        inputs = []
    if inputs:
        # Known by its id alone, the application may have another policy than to stop.
        judge = (
            create_error_finding
            if identity.policy or not identity.has_members
            else create_warning_finding
        )
        yield judge(
            INPUTS,
            f"{_name_topics(inputs)} was deleted and created again after offsets of it were "
            f"committed, by its id{_describe_resized_topics(identity)}",
            _CONSEQUENCE,
            _suggest_commands(identity, inputs),
        )
    if between:
        yield create_error_finding(
            INPUTS,
            f"{_name_topics(between)}, which the application makes itself, was deleted and created "
            "again, by its id",
            _CONSEQUENCE,
            explain_lost_between_steps(between),
        )
    lost = [p for p in identity.lost if p.topic not in identity.recreated]
    if lost:
        yield create_error_finding(
            INPUTS,
            describe_missing_offsets(identity.group, sorted(lost), identity.left)
            + _describe_resized_topics(identity),
            "a start is refused: read from elsewhere, their records would count twice in the state "
            "that is there, or be left out",
            _suggest_commands(identity, sorted({p.topic for p in lost} - set(identity.internal)))
            if identity.list_resized()
            else suggest_ways_out(lost, identity.internal, identity.left),
        )
    if not identity.recreated and not lost:
        yield create_fine_finding(INPUTS, "the committed offsets are of the topics that are there")


_CONSEQUENCE = (
    "workers that run end when they notice it, and a start is refused: the committed offsets count "
    "the records of the former topic"
)


def check_orphaned_changelogs(group: str, changelogs: Collection[str]) -> Iterator[DoctorFinding]:
    """Find changelogs with records of an application that has no offsets, and is known by its id.

    Which inputs it had is known from the App only.
    """
    if changelogs:
        restore = format_command("group restore-offsets", "--made-again", "TOPIC")
        yield create_error_finding(
            INPUTS,
            f"group {group!r} has no committed offset, and there are records in "
            f"{', '.join(sorted(changelogs))}: the offsets have expired "
            "(offsets.retention.minutes), or an input was deleted and created again, and brokers "
            "deleted its offsets with it",
            "a start is refused: read from elsewhere, records would count twice in the state",
            "look again with MODULE:APP in place of the id, which names the inputs. If one was "
            f"made again, {restore} begins at the first records of what is there now; or start "
            f"over with {suggest_reset()}",
        )


def _suggest_commands(identity: InputIdentity, topics: Collection[str]) -> str:
    """Return the commands by which an application goes on with recreated topics."""
    resized = [each for each in identity.list_resized() if each in topics]
    steps = []
    for topic in resized:
        count = str(identity.former_counts[topic])
        steps += [
            format_command("topics delete", topic),
            format_command("create-topics", topic, "--partitions", count),
        ]
    if steps:
        return (
            "end all workers, and let no producer write: then "
            f"{', then '.join(steps)}, as state is kept by so many partitions (what was written "
            f"to the new topic is lost with it), then {suggest_new_topics(topics)}; or, where the "
            f"state may go, start over with {suggest_reset()}, after a look with --dry-run"
        )
    return (
        f"end all workers; {suggest_new_topics(topics)}; or start over with {suggest_reset()}, "
        "after a look with --dry-run"
    )


def _describe_resized_topics(identity: InputIdentity) -> str:
    """Return words for the topics that have other partition counts than before."""
    return "".join(
        f"; {topic!r} has {format_count(identity.counts[topic], 'partition')} now, and had "
        f"{identity.former_counts[topic]}"
        for topic in identity.list_resized()
    )


def _name_topics(topics: Collection[str]) -> str:
    return "input " + ", ".join(map(repr, sorted(topics)))
