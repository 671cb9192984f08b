"""Say why an input is not read from anywhere, and which ways out there are.

Each way out works as it stands (`streams.command_lines`), for what is still there:

    what has happened                     a way out besides a reset
    records were removed                  offset_out_of_range, while an offset is committed
    an input was made again               offset_out_of_range, while its former offset is committed;
                                          else `group restore-offsets --made-again TOPIC`
    a repartition topic was made again    the same command, with the loss accepted
    offsets expired, or were deleted      the ledger, by `group restore-offsets`; or offsets that a
                                          person knows, set with Kafka's tools and then accepted
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from streams.command_lines import format_command
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.runtime.offsets.offset_metadata import decode_metadata, is_streams_metadata

RESTORE = "group restore-offsets"


@dataclass(frozen=True, slots=True)
class RemainingOffsets:
    """Names the offsets that a group still has, where some of its offsets are gone.

    Offsets expire all together, and go with their topic: `kept_topics` have not been made again.
    """

    is_empty: bool
    kept_topics: frozenset[str]


def find_remaining_offsets(
    lost: Collection[Partition], committed: Mapping[Partition, OffsetAndMetadata]
) -> RemainingOffsets:
    """Return for which topics the group still has offsets of its own.

    The `lost` are not known to be of topics that were made again: an offset of the same task that
    names the topic's id says that they were not, as does one of another partition of the topic.
    """
    own = {p: held for p, held in committed.items() if is_streams_metadata(held.metadata)}
    kept = {p.topic for p in own}
    for partition in lost:
        beside = [h for p, h in own.items() if p.number == partition.number]
        told = (decode_metadata(h.metadata).topic_id_hash(partition.topic) for h in beside)
        if any(each is not None for each in told):
            kept.add(partition.topic)
    return RemainingOffsets(not committed, frozenset(kept))


def explain_loss(partition: Partition, offset: int, start_offset: int) -> str:
    """Explain which records may be lost if a partition begins at `start_offset`, and ways out."""
    ways_out = (
        "bring the records back, or let offset_out_of_range say where to go on. Offsets that a "
        f"tool commits are taken only of tasks without stores, or with {suggest_acceptance()}"
    )
    if offset >= start_offset:
        return f"the topic was cut, or deleted and created again. B{ways_out[1:]}"
    return (
        f"the offsets {offset} to {start_offset - 1} were removed before they were read, or "
        "before a position behind them was committed (retention.ms, retention.bytes, "
        "DeleteRecords). If they were markers of transactions or aborted records alone, as at the "
        "end of an input while a worker was killed, nothing is lost: start once with "
        f"offset_out_of_range=earliest, which goes on at {start_offset} of {partition}. "
        f"Else {ways_out}"
    )


def explain_topic_made_again(partition: Partition, offset: int | None, *, is_internal: bool) -> str:
    """Explain that a topic was deleted and created again, and how to go on.

    `offset` is the committed one of the former topic; None where it is gone with that.
    """
    former = "the one that was read" if offset is None else f"its committed offset {offset}"
    problem = (
        f"{partition} is of another topic of the same name than {former}: topic "
        f"{partition.topic!r} was deleted and created again"
    )
    if is_internal:
        return f"{problem}. {explain_lost_between_steps([partition.topic])}"
    ways_out = f"{suggest_new_topics([partition.topic])}; or start over with {suggest_reset()}"
    if offset is None:
        return f"{problem}, and offset_out_of_range=fail: {ways_out}"
    return (
        f"{problem}, and offset_out_of_range=fail: let offset_out_of_range say where to go on in "
        f"the new topic (earliest, latest, by_duration:...); or {ways_out}"
    )


def explain_lost_between_steps(topics: Collection[str]) -> str:
    """Explain which records are lost with recreated repartition topics, and the ways out."""
    names = ", ".join(sorted(topics))
    return (
        f"Records between two steps of this application are lost with {names}, as far as they were "
        f"not processed: reset the application ({suggest_reset()}). To go on without them, which "
        f"leaves results wrong for good: {suggest_new_topics(topics, '--accept-loss')}"
    )


def explain_vanished_offsets(offsets: Mapping[Partition, int], policy: str) -> str:
    """Explain that offsets committed while this worker ran are gone, and how to go on.

    `policy` names the setting that says where to begin.
    """
    places = sorted(offsets)
    return (
        f"the group has no committed offset any more for {', '.join(map(str, places))}, and had "
        f"one while this worker ran: {', '.join(f'{offsets[p]} of {p}' for p in places)}. It has "
        "expired (offsets.retention.minutes) or was deleted. Commit that one, or another, with "
        f"Kafka's tools, and, of a task with stores, take it with {suggest_acceptance()}; or start "
        f"the worker again: without stores, a task begins as {policy} says"
    )


def describe_missing_offsets(
    group: str, partitions: Collection[Partition], left: RemainingOffsets | None = None
) -> str:
    """Explain that inputs have lost their committed offsets, with the likely reasons.

    `left` is what the group still has, None where that is not known. The likeliest comes first.
    """
    made_again = "the topic was deleted and created again, and brokers deleted its offsets with it"
    expired = "have expired (offsets.retention.minutes)"
    if left is None:
        reason = f"they {expired}, or were deleted; or {made_again}"
    elif left.is_empty:
        reason = f"all of its offsets {expired}, or the group was deleted; or {made_again}"
    elif {p.topic for p in partitions} <= left.kept_topics:
        reason = "a tool has deleted them; the topic is still the one that was read"
    else:
        reason = f"{made_again}; or a tool has deleted them"
    return (
        f"group {group!r} has no committed offset for {', '.join(map(str, partitions))}: {reason}"
    )


def describe_foreign_offsets(group: str, offsets: Mapping[Partition, int]) -> str:
    """Explain that offsets of inputs were set by another program than the application."""
    partitions = sorted(offsets)
    return (
        f"offset {offsets[partitions[0]]} of {', '.join(map(str, partitions))} was not committed "
        f"by group {group!r} itself: a tool has set it, or another program"
    )


def suggest_ways_out(
    lost: Collection[Partition],
    internal_topics: Collection[str],
    left: RemainingOffsets | None = None,
) -> str:
    """Return the ways out where inputs have no committed offset and state rests on them.

    `left` is what the group still has, None where that is not known. What is for topics that were
    made again comes last where that is unlikely, and not at all for those that were not.
    """
    topics = {p.topic for p in lost} - (set() if left is None else left.kept_topics)
    new_topics = ""
    if between := topics.intersection(internal_topics):
        new_topics = f"If they were made again: {explain_lost_between_steps(between)}. "
    if inputs := topics.difference(internal_topics):
        names = ", ".join(map(repr, sorted(inputs)))
        new_topics += f"If {names} was made again, {suggest_new_topics(inputs)}. "
    others = (
        f"{suggest_ledger()}; or set offsets that you know with Kafka's tools, and take them with "
        f"{suggest_acceptance()}; or start over with {suggest_reset()} (docs/operations.md)"
    )
    is_likely = left is not None and not left.is_empty
    if new_topics and is_likely:
        return f"{new_topics}Else, {others}"
    return f"{others[0].upper()}{others[1:]}. {new_topics}".rstrip()


def explain_unproven_offsets(
    unproven: Collection[Partition],
    internal_topics: Collection[str],
    kept_topics: Collection[str] = (),
    *,
    is_empty: bool = False,
) -> str:
    """Explain, for a command that commits offsets, that nothing proves those of these inputs.

    `kept_topics` are known not to have been made again. `is_empty`: the group has no offset at all,
    so that these have rather expired.
    """
    new_topics = []
    topics = {p.topic for p in unproven}.difference(kept_topics)
    for inputs, options in (
        (topics.difference(internal_topics), ()),
        (topics.intersection(internal_topics), ("--accept-loss",)),
    ):
        if inputs:
            names = ", ".join(map(repr, sorted(inputs)))
            new_topics.append(f"if {names} was made again, {suggest_new_topics(inputs, *options)}")
    known = (
        "if you know them, set offsets of these with Kafka's tools, and take them with "
        f"{suggest_acceptance()}"
    )
    ways_out = [known, *new_topics] if is_empty else [*new_topics, known]
    return (
        f"nothing proves an offset for {', '.join(map(str, unproven))}, so nothing was committed, "
        f"also of other inputs: {'; '.join(ways_out)}; or start over with {suggest_reset()}"
    )


def explain_accepted_loss(topics: Collection[str]) -> str:
    """Explain which records may be lost if repartition offsets are taken without a proof."""
    names = ", ".join(map(repr, sorted(topics)))
    return (
        f"{names}, which this application writes itself, holds records between two of its steps. "
        "If it was deleted and created again, those that were not processed are lost, and others "
        "count twice or are left out if the offset is not theirs: the results stay wrong"
    )


def explain_untrusted_offsets() -> str:
    """Return the ways out where offsets are committed that don't account for the state."""
    return (
        f"{suggest_acceptance()} takes them, with what they skip or repeat; {suggest_ledger()}; "
        f"{suggest_reset()} starts over (docs/operations.md)"
    )


def suggest_ledger() -> str:
    """Return the command that commits what the ledger proves."""
    return f"with a ledger {format_command(RESTORE)} commits the offsets that it proves"


def suggest_new_topics(topics: Iterable[str], *options: str) -> str:
    """Return the command that begins with the new topics, beside the state of the former ones."""
    flags = [word for topic in sorted(set(topics)) for word in ("--made-again", topic)]
    return (
        f"{format_command(RESTORE, *flags, *options)} begins at the first records of what is there "
        "now, beside the state as it is"
    )


def suggest_acceptance() -> str:
    """Return the command that takes offsets which a tool has set."""
    return format_command(RESTORE, "--accept")


def suggest_reset() -> str:
    """Return the command `group reset`, with which the application starts over."""
    return format_command("group reset")
