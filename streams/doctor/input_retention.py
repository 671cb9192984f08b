"""Check whether inputs lose records by their retention before they are processed.

A broker deletes a segment of a topic once its newest record is older than `retention.ms`, whether
its records have been processed or not. So a record may go from its own timestamp plus the retention
on, and goes some time later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from streams.command_lines import format_command, format_kafka_command
from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.doctor.durations import format_duration
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)
from streams.doctor.inputs import NEXT_RECORDS_MAX, RETENTION, USED_PART, InputProgress
from streams.doctor.topics import name_partitions

_URGENT_PART = 0.1
_URGENT_MS = 3_600_000
"""The time before the first loss from which on it is an error, or the part of the retention."""
_MS = 1_000
_STOP = "; the thread that comes upon that stops, unless offset_out_of_range says where to go on"


class OldestUnread(NamedTuple):
    """Says when the first record that waits in a partition was written, and the retention.

    A record may have no time (-1); what is older than 1970 can't be told from that.
    """

    timestamp_ms: int
    retention_ms: int

    @property
    def has_time(self) -> bool:
        return self.timestamp_ms >= 0

    @property
    def expires_at_ms(self) -> int:
        return self.timestamp_ms + self.retention_ms

    def is_near(self, now_ms: int) -> bool:
        """Return whether the record has used most of the retention."""
        return now_ms - self.timestamp_ms >= USED_PART * self.retention_ms

    def is_urgent(self, now_ms: int) -> bool:
        """Return whether the record may be deleted within an hour, or a tenth of the retention."""
        left_ms = self.expires_at_ms - now_ms
        return left_ms <= max(_URGENT_MS, _URGENT_PART * self.retention_ms)


def check_retention(
    inputs: Mapping[Partition, InputProgress],
    oldest: Mapping[Partition, OldestUnread],
    now_ms: int,
    *,
    has_workers: bool,
) -> Iterator[DoctorFinding]:
    """Find records that were lost before they were processed, and those that are about to be.

    `oldest` are the oldest unread records of partitions that may be about to lose some.
    """
    lost = {p: each for p, each in inputs.items() if each.first_offset > each.committed_offset}
    near = {
        p: each
        for p, each in oldest.items()
        if p not in lost and each.has_time and each.is_near(now_ms)
    }
    undated = {
        p: each
        for p, each in inputs.items()
        if p not in lost and _may_lose_undated_records(each, oldest.get(p))
    }
    for topic in sorted({each.topic for each in lost}):
        yield _describe_lost({p: each for p, each in sorted(lost.items()) if p.topic == topic})
    for topic in sorted({each.topic for each in near}):
        of_topic = {p: each for p, each in near.items() if p.topic == topic}
        unread = sum(each.lag for p, each in inputs.items() if p.topic == topic)
        yield _describe_near(of_topic, unread, now_ms, has_workers=has_workers)
    for topic in sorted({each.topic for each in undated}):
        of_topic_undated = {p: each for p, each in sorted(undated.items()) if p.topic == topic}
        yield _describe_undated(of_topic_undated, has_workers=has_workers)
    if inputs and not lost and not near and not undated:
        worst = max(each.lag for each in inputs.values())
        yield create_fine_finding(
            RETENTION, f"nothing is about to be lost; the largest lag is {worst:,}"
        )


def _may_lose_undated_records(progress: InputProgress, oldest: OldestUnread | None) -> bool:
    """Return whether a partition may be about to lose unread records whose age is not known.

    The first offsets that are unread were looked at: where they are all that may be lost, and have
    no record, they are markers of transactions and the like.
    """
    expiring_count = min(progress.expiring_offset or 0, progress.end_offset)
    expiring_count -= progress.committed_offset
    if oldest is None:
        return expiring_count > NEXT_RECORDS_MAX
    return expiring_count > 0 and not oldest.has_time


def _describe_lost(lost: Mapping[Partition, InputProgress]) -> DoctorFinding:
    """Return the finding of partitions of one topic that have lost unread records."""
    partition, first = next(iter(lost.items()))
    others = name_partitions([str(p) for p in lost if p != partition])
    count = sum(each.first_offset - each.committed_offset for each in lost.values())
    return create_error_finding(
        RETENTION,
        f"{partition} begins at offset {first.first_offset}, and {first.committed_offset} is "
        "the next to process" + (f"; so it is with {others}" if others else ""),
        f"up to {count:,} records are lost; the thread stops, unless offset_out_of_range says "
        "where to go on",
        f"{format_command('topics describe', partition.topic)} shows which are there; set "
        "offset_out_of_range=earliest to go on with them",
    )


def _describe_undated(
    undated: Mapping[Partition, InputProgress], *, has_workers: bool
) -> DoctorFinding:
    """Return the finding of partitions of one topic whose unread records may go, nobody knows when.

    Brokers know from which offset on records are younger. The first ones before it have no time,
    or are far behind the committed offset, as after compaction.
    """
    partition, first = next(iter(undated.items()))
    others = name_partitions([str(p) for p in undated if p != partition])
    create = create_warning_finding if has_workers else create_error_finding
    return create(
        RETENTION,
        f"no record of {partition} before offset {first.expiring_offset} is known to be of the "
        f"last {USED_PART:.0%} of retention.ms, and {first.committed_offset} is the next to "
        "process: the records between may be deleted soon, or at any moment; how old they are is "
        "not known" + (f"; so it is with {others}" if others else ""),
        f"records are deleted before they are processed, the oldest first{_STOP}",
        f"keep them for longer: {_format_keep_command(partition.topic)}; "
        f"{_advise_catching_up(has_workers)}"
        ". Then set retention.ms as it was",
    )


def _format_keep_command(topic: str) -> str:
    """Return the command by which a topic loses no record by its age."""
    alter = ("kafka-configs.sh", "--alter", "--entity-type", "topics", "--entity-name")
    return format_kafka_command(*alter, topic, "--add-config", "retention.ms=-1")


def _advise_catching_up(has_workers: bool) -> str:
    if has_workers:
        return "and let the application catch up"
    return "no worker runs: start workers before that time, and let them catch up"


def _describe_near(
    near: Mapping[Partition, OldestUnread], unread: int, now_ms: int, *, has_workers: bool
) -> DoctorFinding:
    """Return the finding of partitions of one topic whose oldest unread records may go soon."""
    partition = min(near, key=lambda each: near[each].expires_at_ms)
    record = near[partition]
    left_ms = record.expires_at_ms - now_ms
    going = f"from {_format_instant(record.expires_at_ms, now_ms)} on"
    if left_ms <= 0:
        going = f"at any moment, since {_format_instant(record.expires_at_ms, now_ms)}"
    others = name_partitions([str(p) for p in sorted(near) if p != partition])
    age = format_duration((now_ms - record.timestamp_ms) / _MS)
    retention = format_duration(record.retention_ms / _MS)
    is_error = not has_workers or any(each.is_urgent(now_ms) for each in near.values())
    create = create_error_finding if is_error else create_warning_finding
    return create(
        RETENTION,
        f"the oldest unread record of {partition} is {age} old, and retention.ms is "
        f"{record.retention_ms} ({retention}): it may be deleted {going}"
        + (f"; so it is soon with {others}" if others else "")
        + f". {format_count(unread, 'record')} of {partition.topic} "
        f"{'is' if unread == 1 else 'are'} unread",
        "records are deleted before they are processed, the oldest first"
        + ("" if left_ms <= 0 else f", {format_duration(left_ms / _MS)} from now")
        + _STOP,
        f"keep them for longer: {_format_keep_command(partition.topic)}; "
        f"{_advise_catching_up(has_workers)}"
        f". Then set retention.ms={record.retention_ms} again",
    )


def _format_instant(at_ms: int, now_ms: int) -> str:
    """Return an instant in UTC, with its date where it is of another day than now."""
    at, now = (datetime.fromtimestamp(each / _MS, UTC) for each in (at_ms, now_ms))
    return f"{at:%H:%M} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M} UTC"
