"""Fetch what shows whether the inputs of an application are the topics that it has read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from streams.commands.offset_restoration import Restoration
from streams.commands.restorable_tasks import list_restorable_tasks
from streams.common.topic_partitions import CommittedOffsets, Partition
from streams.doctor.application_facts import ApplicationFacts
from streams.doctor.configuration import find_lowest_setting
from streams.doctor.disk_facts import read_stores_without_worker
from streams.doctor.findings import DoctorFinding
from streams.doctor.former_counts import list_equally_partitioned_topics
from streams.doctor.recreated_inputs import (
    InputIdentity,
    check_input_identity,
    check_orphaned_changelogs,
    find_recreated_topics,
)
from streams.errors import ConfigError
from streams.membership.group_offsets import fetch_group_offsets
from streams.runtime.offsets.offset_refusals import RemainingOffsets, find_remaining_offsets
from streams.runtime.offsets.topic_ids import fetch_topic_id_hashes

_MS_PER_MINUTE = 60_000
_CHANGELOG = "-changelog"


def check_recreated_inputs(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Yield findings on input topics that were recreated since their offsets were committed."""
    if facts.app is None and not facts.committed():
        yield from check_orphaned_changelogs(facts.application_id, _find_orphaned_changelogs(facts))
        return
    yield from check_input_identity(fetch_input_identity(facts))


def fetch_input_identity(facts: ApplicationFacts) -> InputIdentity:
    """Fetch the topics' ids, find offsets that are gone, and derive former partition counts."""
    known, counts = facts.topics(), facts.cluster.clients().partition_counts
    sources = (known.inputs | known.repartition) & counts.keys()
    ids = fetch_topic_id_hashes(facts.cluster.admin(), sources)
    recreated = find_recreated_topics(facts.committed(), ids)
    try:
        lost = [p for p in _find_inputs_without_offset(facts) if p.topic in counts]
    except ConfigError:
        # Nothing has been started yet; or a changelog is missing, which is another point.
        if not recreated and facts.committed():
            raise
        lost = []
    group = facts.group()
    found = InputIdentity(
        facts.application_id,
        recreated,
        lost,
        _find_remaining_offsets(facts, lost),
        known.repartition,
        counts,
        policy="" if facts.app is None else facts.config.offset_out_of_range,
        has_members=group is not None and bool(group.members),
    )
    suspects = recreated | {p.topic for p in lost}
    if facts.topology is None or not suspects:
        return found
    companions = list_equally_partitioned_topics(facts.topology)
    former = {
        topic: count
        for topic, count in facts.derive_former_counts(suspects).items()
        if companions.get(topic) and topic not in known.repartition
    }
    return replace(found, former_counts=former)


def _find_inputs_without_offset(facts: ApplicationFacts) -> Collection[Partition]:
    """Return the inputs on which state rests and that have no committed offset.

    While no worker runs, `group restore-offsets` knows them as a start does. While one runs, only
    what is committed with a changelog in one transaction is compared with it.
    """
    app, topology = facts.app, facts.topology
    if app is None or topology is None:
        return ()
    counts, group = facts.cluster.clients().partition_counts, facts.group()
    if not {each for sub in topology.subtopologies for each in sub.sources} <= counts.keys():
        return ()  # a topic is missing, which is another point
    if group is None or not group.members:
        plan = Restoration(
            facts.cluster.clients(),
            app,
            _fetch_committed(facts, require_stable=True),
            accept=False,
            made_again=(),
        ).plan_offsets()
        return [each.partition for each in plan if each.now is None]
    if not facts.config.exactly_once:
        return ()
    tasks = [each for each in list_restorable_tasks(topology, counts) if each.changelogs]
    changelogs = [p for task in tasks for p in task.changelogs.values()]
    ends = facts.cluster.admin().fetch_latest_offsets(changelogs)
    committed = _fetch_committed(facts, require_stable=True)  # after the ends
    return [
        p
        for task in tasks
        if any(ends[each] > 0 for each in task.changelogs.values())
        and not any(p in committed.offsets or p in committed.pending for p in task.partitions)
        for p in task.partitions
    ]


def _find_remaining_offsets(
    facts: ApplicationFacts, lost: Collection[Partition]
) -> RemainingOffsets:
    """Return what the group still has; not empty, as of a deleted topic, where none can expire.

    Where the state here is younger than brokers keep offsets, these have not expired.
    """
    left = find_remaining_offsets(lost, facts.committed())
    if not lost or not left.is_empty:
        return left
    minutes = find_lowest_setting(facts.cluster.broker_settings(), "offsets.retention.minutes")
    written = [each.written_ms for each in read_stores_without_worker(facts.state_path)]
    if minutes is None or not any(written):
        return left
    age_ms = facts.cluster.now_ms - max(written)
    return RemainingOffsets(age_ms > minutes * _MS_PER_MINUTE, left.kept_topics)


def _find_orphaned_changelogs(facts: ApplicationFacts) -> list[str]:
    """Return changelogs that the application seems to have by their names, if they have records."""
    group = facts.group()
    if group is not None and group.members:
        return []
    counts, own = facts.cluster.clients().partition_counts, f"{facts.application_id}-"
    others = tuple(
        f"{each.group}-" for each in facts.cluster.groups() if each.group.startswith(own)
    )
    named = [
        each
        for each in counts
        if each.startswith(own) and each.endswith(_CHANGELOG) and not each.startswith(others)
    ]
    ends = facts.cluster.admin().fetch_latest_offsets(
        [Partition(each, number) for each in named for number in range(counts[each])]
    )
    return sorted({p.topic for p, end in ends.items() if end > 0})


def _fetch_committed(facts: ApplicationFacts, *, require_stable: bool) -> CommittedOffsets:
    return facts.cluster.clients().ask_brokers(
        lambda connect: fetch_group_offsets(
            connect, facts.application_id, None, require_stable=require_stable
        )
    )
