"""Plan which offsets of which partitions a read of a topic covers, without reading records.

The end is the last stable offset, below which no transaction is open; with `read_uncommitted` it is
the high watermark. All limits hold together. Offsets that were asked for and are gone, or are not
there yet, are an error, as in Spark's own connector with `failOnDataLoss`: a read never returns
less in silence.

Times are compared with each record's own (`select_records_by_time`); of the offsets they narrow
only the beginning, by the broker's index, and not the end: behind a record, or a marker, that is
too late there may be one that is not (records are in no order of time, and markers have the
broker's time).
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.runtime.clients import Admin
from streams.spark.cuts.cut import Cut
from streams.spark.cuts.members import subtract_runs
from streams.spark.source.broker_access import START_TIMEOUT_S, translate_unanswered_requests
from streams.spark.source.fetching import RawBatch
from streams.spark.source.option_texts import OffsetLimits
from streams.spark.source.options import IsolationLevel, TopicReadLimits
from streams.spark.source.ranges import OffsetRange
from streams.spark.source.removal import explain_removal


def plan_offset_ranges(
    admin: Admin, topic: str, limits: TopicReadLimits, isolation: IsolationLevel
) -> list[OffsetRange]:
    """Return the ranges of offsets that a read within all limits has to cover.

    With a cut the offsets below its ends that are not in it are left out. A partition without any
    offset to read has an empty range. Raises ConfigError for a topic, a partition or offsets that
    aren't there, StreamsError while no broker answers.
    """
    partitions = _require_partitions(admin, topic, limits)
    with translate_unanswered_requests(f"the offsets of {topic} can't be asked for"):
        return _fetch_and_resolve_ranges(admin, partitions, limits, isolation)


def _require_partitions(admin: Admin, topic: str, limits: TopicReadLimits) -> list[Partition]:
    """Return the partitions of a topic that the limits name, or all if they name none.

    Raises ConfigError for a topic or partition that isn't there.
    """
    counts = admin.fetch_partition_counts_at_start(START_TIMEOUT_S)
    if topic not in counts:
        close = difflib.get_close_matches(topic, counts, n=3)
        similar = f"; similar ones are {', '.join(close)}" if close else ""
        raise ConfigError(f"there is no topic {topic!r}{similar}")
    count = counts[topic]
    numbers = range(count) if limits.partitions is None else limits.partitions
    _check_partition_numbers(topic, count, "partitions", numbers)
    for name in ("offsets_from", "offsets_to", "timestamps_from", "timestamps_to"):
        given = getattr(limits, name)
        if isinstance(given, Mapping):
            _check_partition_numbers(topic, count, name, given)
    return [Partition(topic, number) for number in numbers]


def _check_partition_numbers(
    topic: str, partition_count: int, option_name: str, numbers: Iterable[int]
) -> None:
    """Raise ConfigError if an option names a partition that the topic doesn't have."""
    strange = [number for number in numbers if number >= partition_count]
    if strange:
        raise ConfigError(
            f"option {option_name} names partition {strange[0]}: {topic} has {partition_count}, "
            "from 0 on"
        )


def _fetch_and_resolve_ranges(
    admin: Admin, partitions: list[Partition], limits: TopicReadLimits, isolation: IsolationLevel
) -> list[OffsetRange]:
    """Fetch the offsets of each partition, and return the ranges that are within the limits.

    Raises ConfigError for offsets that are gone or not there yet.
    """
    starts = admin.fetch_earliest_offsets(partitions)
    ends = fetch_readable_ends(admin, partitions, isolation)
    not_before = find_offsets_since(admin, partitions, limits.timestamps_from)
    beyond = {} if limits.cut is None else limits.cut.beyond
    found: list[OffsetRange] = []
    for partition in partitions:
        start, end = starts[partition], ends[partition]
        first = _resolve_offset(limits.offsets_from, partition.number, start, end, start)
        until = _resolve_offset(limits.offsets_to, partition.number, start, end, end)
        if limits.cut is not None:
            cut_at = require_end_offset_at_cut(limits.cut, partition)
            if cut_at and not start <= cut_at <= end:  # 0: nothing of it is in the cut
                removed = f"; {explain_removal(admin, partition, start)}" if start else ""
                raise ConfigError(
                    f"the cut names {partition} up to offset {cut_at}, and there are "
                    f"{_format_offsets(start, end)}: it is of another topic of this name, or too "
                    f"old{removed}"
                )
            until = min(until, cut_at or start)
        if first < start or until > end or first > end or until < start:
            is_removed = min(first, until) < start
            removed = f": {explain_removal(admin, partition, start)}" if is_removed else ""
            raise ConfigError(
                f"{partition}: offsets {_format_offsets(first, until)} are asked for, and there "
                f"are {_format_offsets(start, end)}{removed}"
            )
        first = max(first, not_before.get(partition, first))
        found += subtract_runs(
            OffsetRange(*partition, first, max(until, first)), beyond.get(partition, ())
        )
    return found


def fetch_readable_ends(
    admin: Admin, partitions: Sequence[Partition], isolation: IsolationLevel
) -> dict[Partition, int]:
    """Fetch the offset up to which each partition may be read with an isolation level."""
    if isolation is IsolationLevel.READ_COMMITTED:
        return admin.fetch_last_stable_offsets(partitions)
    return admin.fetch_latest_offsets(partitions)


def find_offsets_since(
    admin: Admin, partitions: Iterable[Partition], since_ms: int | Mapping[int, int] | None
) -> dict[Partition, int]:
    """Find for each partition the first offset whose record is not older than a given time.

    Times in ms since 1970, one for all or by partition; the offset is the end where all records are
    older. Partitions for which no time is given are left out.
    """
    by_time: dict[int, list[Partition]] = {}
    for partition in partitions:
        at_ms = _time_of_partition(since_ms, partition.number)
        if at_ms is not None:
            by_time.setdefault(at_ms, []).append(partition)
    found: dict[Partition, int] = {}
    for at_ms, those in by_time.items():
        found |= admin.fetch_offsets_for_time(those, at_ms)
    return found


def select_records_by_time(limits: TopicReadLimits, raw: RawBatch) -> RawBatch:
    """Select the records of a batch whose timestamps are within the limits."""
    begin_ms = _time_of_partition(limits.timestamps_from, raw.partition)
    end_ms = _time_of_partition(limits.timestamps_to, raw.partition)
    if begin_ms is None and end_ms is None:
        return raw
    begin_ms = -sys.maxsize if begin_ms is None else begin_ms
    end_ms = sys.maxsize if end_ms is None else end_ms
    return raw.select_records([begin_ms <= each < end_ms for each in raw.timestamps_ms])


def require_end_offset_at_cut(cut: Cut, partition: Partition) -> int:
    """Return a partition's end offset at the cut: committed offset, store position or output end.

    Raises ConfigError where the cut doesn't say.
    """
    if partition in cut.offsets:
        return cut.offsets[partition]
    for store in cut.stores.values():
        if store.changelog == partition.topic and partition.number in store.positions:
            return store.positions[partition.number]
    ends = cut.ends or {}
    if partition in ends:
        return ends[partition]
    names = {topic for topic, _ in (*cut.offsets, *ends)}
    names |= {store.changelog for store in cut.stores.values()}
    unsaid = "" if cut.ends is not None else "; where its outputs ended it can't tell"
    raise ConfigError(
        f"the cut of {cut.application_id!r} says nothing of {partition}: it knows "
        f"{', '.join(sorted(names)) or 'no topics'}{unsaid}"
    )


def _resolve_offset(
    spec: OffsetLimits,
    partition_number: int,
    log_start_offset: int,
    log_end_offset: int,
    default_offset: int,
) -> int:
    """Convert a limit to a partition's offset, which is `default_offset` without a limit."""
    at = spec.get(partition_number, default_offset) if isinstance(spec, Mapping) else spec
    return log_start_offset if at == "earliest" else log_end_offset if at == "latest" else int(at)


def _time_of_partition(
    times_ms: int | Mapping[int, int] | None, partition_number: int
) -> int | None:
    """Return the time limit of a partition in ms, or None if it has none."""
    return times_ms.get(partition_number) if isinstance(times_ms, Mapping) else times_ms


def _format_offsets(begin: int, until: int) -> str:
    """Return a range of offsets in words, both ends inclusive."""
    return f"{begin} to {until - 1}" if begin < until else f"none (the next is {until})"
