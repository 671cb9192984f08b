"""Say where tasks without state go on whose inputs have no committed offset, though they have run.

Brokers delete the offsets of a topic with it, and those of a group after offsets.retention.minutes.
Where state rests on an offset a start is refused (`recreated_inputs`). Without state nothing can be
wrong with it, and a start begins as the policy of the input says, without a word: `offset_reset` of
its source, `start_at` or `auto_offset_reset`. A partition that was added to an input begins at its
first record, whatever the policy, unless that lets nothing begin.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.doctor.application_facts import ApplicationFacts
from streams.doctor.findings import DoctorFinding, create_warning_finding
from streams.doctor.recreated_inputs import INPUTS
from streams.settings.offset_reset import InitialPolicies, ResetStrategy
from streams.topology.initial_policies import find_initial_policies


@dataclass(frozen=True, slots=True)
class UncommittedInput:
    """Holds the partitions of an input without an offset, and how many offsets they span."""

    topic: str
    partitions: Collection[Partition]
    record_count: int


def check_uncommitted_inputs(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Find inputs without an offset of tasks without state, while no worker runs."""
    group = facts.group()
    if facts.topology is None or group is None or group.members:
        return
    counts, committed = facts.cluster.clients().partition_counts, facts.committed()
    topics = {
        topic
        for sub in facts.topology.subtopologies
        if not sub.stores
        for topic in sub.sources
        if topic in facts.topics().inputs and topic in counts
    }
    policies = find_initial_policies(facts.topology, facts.config)
    partitions = [Partition(t, n) for t in sorted(topics) for n in range(counts[t])]
    without = list_partitions_begun_by_policy(partitions, committed, policies)
    if not without:
        return
    firsts = facts.cluster.admin().fetch_earliest_offsets(without)
    ends = facts.cluster.admin().fetch_latest_offsets(without)
    spans = {p: ends[p] - firsts[p] for p in without if ends[p] > firsts[p]}
    yield from describe_uncommitted_inputs(group_uncommitted_inputs_by_topic(spans), policies)


def group_uncommitted_inputs_by_topic(spans: Mapping[Partition, int]) -> list[UncommittedInput]:
    """Group partitions with the offsets that they span by their topics."""
    return [
        UncommittedInput(
            topic,
            [p for p in sorted(spans) if p.topic == topic],
            sum(span for p, span in spans.items() if p.topic == topic),
        )
        for topic in sorted({p.topic for p in spans})
    ]


def list_partitions_begun_by_policy(
    partitions: Collection[Partition], committed: Container[Partition], policies: InitialPolicies
) -> list[Partition]:
    """Return the partitions without an offset that begin as the policy of their input says.

    One whose topic has offsets of other partitions was added: nothing of it is skipped, and only
    the policy not to begin holds for it (`OffsetResetter.choose_start_offsets`).
    """
    read = {p.topic for p in partitions if p in committed}
    return [
        p
        for p in partitions
        if p not in committed
        and (p.topic not in read or policies.find_policy(p.topic).strategy is ResetStrategy.NONE)
    ]


def describe_uncommitted_inputs(
    inputs: Collection[UncommittedInput], policies: InitialPolicies
) -> Iterator[DoctorFinding]:
    """Say of each input what the next start does by the policy of that input."""
    for each in inputs:
        count = format_count(each.record_count, "offset")
        match policies.find_policy(each.topic).strategy:
            case ResetStrategy.EARLIEST:
                what_happens = (
                    f"the next start reads all {count} that are there, which is right for a new "
                    "topic; of the former one it would write results again"
                )
            case ResetStrategy.LATEST:
                what_happens = (
                    f"the next start leaves out all {count} that are there, and reads what comes "
                    "then"
                )
            case ResetStrategy.NONE:
                what_happens = "the next start is refused, as nothing says where to begin"
            case _:
                what_happens = f"the next start begins as this policy says, among {count}"
        yield create_warning_finding(
            INPUTS,
            f"the group is there, and has no offset of input {each.topic!r} in "
            f"{format_count(len(each.partitions), 'partition')} with records: the topic was "
            "deleted and created again, its offsets have expired, or it was never read",
            f"its tasks have no state, so by {policies.describe_policy(each.topic)} {what_happens}",
            "start the workers if that is meant; to begin elsewhere "
            + format_command("group reset", "--to", "end", "--dry-run")
            + " shows what would be set (beginning, end, or a time)",
        )
