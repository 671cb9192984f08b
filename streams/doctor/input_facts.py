"""Fetch how far an application's inputs are read, and the records that a check looks at."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TypeAlias

from streams.common.topic_partitions import Partition
from streams.doctor.cluster_facts import ClusterFacts
from streams.doctor.input_retention import OldestUnread
from streams.doctor.inputs import (
    KEYS_SAMPLED,
    NEXT_RECORDS_MAX,
    SKEW_RECORDS_MIN,
    InputProgress,
    find_expiring_time_ms,
)
from streams.serdes.serde import Serde
from streams.topology.build import Topology

PeriodWords: TypeAlias = str
RecordPlace: TypeAlias = tuple[Partition, int]
SerdeFault: TypeAlias = str
ReadCount: TypeAlias = int

_RECENT_MS = 3_600_000


def fetch_progress(
    cluster: ClusterFacts, read: Mapping[Partition, int]
) -> Mapping[Partition, InputProgress]:
    """Return the progress of partitions that exist; `read` are their committed offsets."""
    if not read:
        return {}
    partitions = sorted(read)
    firsts = cluster.admin().fetch_earliest_offsets(partitions)
    ends = cluster.admin().fetch_latest_offsets(partitions)
    settings = cluster.topic_settings({each.topic for each in partitions})
    expiring: dict[Partition, int] = {}
    for topic, found in settings.items():
        time_ms = find_expiring_time_ms(found, cluster.now_ms)
        # Of a partition whose first records are gone already, brokers may tell no time.
        lagging = [p for p in partitions if p.topic == topic and firsts[p] <= read[p] < ends[p]]
        if time_ms is not None and lagging:
            expiring |= cluster.admin().fetch_offsets_for_time(lagging, time_ms)
    return {p: InputProgress(firsts[p], read[p], ends[p], expiring.get(p)) for p in partitions}


def fetch_oldest_unread(
    cluster: ClusterFacts, progress: Mapping[Partition, InputProgress]
) -> dict[Partition, OldestUnread]:
    """Return the first unread record of each partition that is about to lose records by time.

    Offsets without a record, such as markers of transactions, are passed over.
    """
    starts = {
        p: each.committed_offset
        for p, each in progress.items()
        if each.first_offset
        <= each.committed_offset
        < min(each.expiring_offset or 0, each.end_offset)
    }
    if not starts:
        return {}
    ends = {p: min(progress[p].end_offset, at + NEXT_RECORDS_MAX) for p, at in starts.items()}
    settings = cluster.topic_settings({each.topic for each in starts})
    found: dict[Partition, OldestUnread] = {}
    with closing(cluster.clients().create_reader(committed_only=False)) as reader:
        for message in reader.read_records(starts, ends):
            partition = Partition(message.topic() or "", message.partition() or 0)
            _, timestamp_ms = message.timestamp()
            retention_ms = int(settings[partition.topic]["retention.ms"])
            found.setdefault(partition, OldestUnread(timestamp_ms, retention_ms))
    return found


def count_recent_or_all_records(
    cluster: ClusterFacts, progress: Mapping[Partition, InputProgress]
) -> tuple[dict[Partition, int], PeriodWords]:
    """Return how many offsets each partition has of the last hour, and words for that time.

    Where all together are few, all are counted that there are, and the words are empty.
    """
    filled = [p for p, each in progress.items() if each.end_offset > each.first_offset]
    since = cluster.now_ms - _RECENT_MS
    starts = cluster.admin().fetch_offsets_for_time(filled, since) if filled else {}
    recent = {p: max(e.end_offset - starts.get(p, e.end_offset), 0) for p, e in progress.items()}
    if sum(recent.values()) >= SKEW_RECORDS_MIN:
        return recent, " of the last hour"
    return {p: each.end_offset - each.first_offset for p, each in progress.items()}, ""


def read_keys(
    cluster: ClusterFacts, partition: Partition, first: int, end: int
) -> list[bytes | None]:
    """Return the keys of the newest records of a partition."""
    start = max(first, end - KEYS_SAMPLED)
    reader = cluster.clients().create_reader(committed_only=False)
    try:
        return [each.key() for each in reader.read_records({partition: start}, {partition: end})]
    finally:
        reader.close()


def find_unreadable_records(
    cluster: ClusterFacts, topology: Topology, progress: Mapping[Partition, InputProgress]
) -> tuple[dict[RecordPlace, SerdeFault], ReadCount]:
    """Read the next records of each partition of the inputs with the App's serdes.

    Returns the first fault of each partition by its place, and how many records were read. No
    function of the user but the serdes is called.
    """
    serdes: dict[str, tuple[Serde[object], Serde[object]]] = {
        topic: (source.key.for_topic(topic, "key"), source.value.for_topic(topic, "value"))
        for sub in topology.subtopologies
        for topic, source in sub.sources.items()
    }
    starts = {p: max(each.committed_offset, each.first_offset) for p, each in progress.items()}
    stable = cluster.admin().fetch_last_stable_offsets(list(starts)) if starts else {}
    faults: dict[RecordPlace, SerdeFault] = {}
    count = 0
    for partition, start in starts.items():
        if start >= stable[partition] or partition.topic not in serdes:
            continue
        reader = cluster.clients().create_reader(committed_only=True)
        try:
            end = min(stable[partition], start + NEXT_RECORDS_MAX)
            for message in reader.read_records({partition: start}, {partition: end}):
                count += 1
                place = partition, int(message.offset())
                key, value = serdes[partition.topic]
                for serde, data in ((key, message.key()), (value, message.value())):
                    if (
                        fault := _find_deserialization_fault(serde, partition.topic, data)
                    ) is not None:
                        faults.setdefault(place, fault)
                if place in faults:
                    break
        finally:
            reader.close()
    return faults, count


def _find_deserialization_fault(serde: Serde[object], topic: str, data: bytes | None) -> str | None:
    """Return why a serde refuses bytes; None where it reads them."""
    if data is None:
        return None
    try:
        serde.deserialize(data)
    except Exception as error:  # its text may show the value, which the log would not
        return f"{serde.name} raises {type(error).__name__}"
    return None
