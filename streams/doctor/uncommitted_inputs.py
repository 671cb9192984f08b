"""Say where tasks without state go on whose inputs have no committed offset, though they have run.

Brokers delete the offsets of a topic with it, and those of a group after offsets.retention.minutes.
Where state rests on an offset a start is refused (`recreated_inputs`). Without state nothing can be
wrong with it, and a start begins as `auto_offset_reset` says, without a word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.doctor.application_facts import ApplicationFacts
from streams.doctor.findings import DoctorFinding, find_warning
from streams.settings.offset_reset import STOP_WORDS

_INPUTS = "inputs"
_EARLIEST, _LATEST = "earliest", "latest"


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
    partitions = [Partition(t, n) for t in sorted(topics) for n in range(counts[t])]
    without = [p for p in partitions if p not in committed]
    if not without:
        return
    firsts = facts.cluster.admin().fetch_earliest_offsets(without)
    ends = facts.cluster.admin().fetch_latest_offsets(without)
    spans = {p: ends[p] - firsts[p] for p in without if ends[p] > firsts[p]}
    yield from describe_uncommitted_inputs(list_inputs(spans), facts.config.auto_offset_reset)


def list_inputs(spans: Mapping[Partition, int]) -> list[UncommittedInput]:
    """Group partitions with the offsets that they span by their topics."""
    return [
        UncommittedInput(
            topic,
            [p for p in sorted(spans) if p.topic == topic],
            sum(span for p, span in spans.items() if p.topic == topic),
        )
        for topic in sorted({p.topic for p in spans})
    ]


def describe_uncommitted_inputs(
    inputs: Collection[UncommittedInput], policy: str
) -> Iterator[DoctorFinding]:
    """Say of each input what the next start does by a policy of `auto_offset_reset`."""
    for each in inputs:
        count = format_count(each.record_count, "offset")
        what_happens = {
            _EARLIEST: f"the next start reads all {count} that are there, which is right for a new "
            "topic; of the former one it would write results again",
            _LATEST: f"the next start leaves out all {count} that are there, and reads what comes "
            "then",
            STOP_WORDS["auto_offset_reset"]: "the next start is refused, as nothing says where to "
            "begin",
        }.get(policy, f"the next start begins as this policy says, among {count}")
        yield find_warning(
            _INPUTS,
            f"the group is there, and has no offset of input {each.topic!r} in "
            f"{format_count(len(each.partitions), 'partition')} with records: the topic was "
            "deleted and created again, its offsets have expired, or it was never read",
            f"its tasks have no state, so by auto_offset_reset={policy} {what_happens}",
            "start the workers if that is meant; to begin elsewhere "
            + format_command("group reset", "--to", "end", "--dry-run")
            + " shows what would be set (beginning, end, or a time)",
        )
