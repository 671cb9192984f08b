"""Check the clocks of workers, by the numbers of their commits and by the date of their /health.

The number of a commit is the wall clock of its worker in ms, or one more than the number before
(`streams.runtime.offsets.offset_metadata`). So one of the future shows that a clock was ahead when
it was made, on any machine; a clock that is behind shows at /health only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from streams.command_lines import format_command
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor.durations import format_duration
from streams.doctor.findings import DoctorFinding, create_fine_finding, create_warning_finding
from streams.doctor.local_workers import LocalWorker
from streams.doctor.topics import name_partitions
from streams.monitoring.group_report import GroupReport
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.settings.timestamp_extractors import TimestampPolicy
from streams.topology.build import Topology

WORKER_CLOCKS = "clocks of workers"
_AHEAD_MAX_S = 30.0
_MS = 1_000


def find_commits_ahead(
    committed: Mapping[Partition, OffsetAndMetadata], now_ms: int
) -> dict[Partition, float]:
    """Return by how many seconds the numbers of commits are ahead of a clock, where they are."""
    found = {}
    for partition, held in committed.items():
        number = decode_metadata(held.metadata).commit_number
        if number is not None and number - now_ms > _AHEAD_MAX_S * _MS:
            found[partition] = (number - now_ms) / _MS
    return found


def check_clocks(
    ahead: Mapping[Partition, float],
    clocks_ahead_s: Mapping[str, float],
    owners: Mapping[Partition, str] = {},
    stamped: Collection[str] | None = None,
) -> Iterator[DoctorFinding]:
    """Find workers whose clock is off: `ahead` by their commits, `clocks_ahead_s` by /health.

    `owners` are words for the members that have the partitions now. `stamped` are the inputs whose
    records get the worker's time; None where that is not known.
    """
    off = {a: s for a, s in clocks_ahead_s.items() if abs(s) > _AHEAD_MAX_S}
    consequence = _CONSEQUENCE
    if stamped:
        consequence = f"each record of {name_partitions(sorted(stamped))} is stamped by that "
        consequence += "clock, as timestamp_extractor is wallclock, and counts in the windows of "
        consequence += f"that time; besides, {_CONSEQUENCE}"
    for address, seconds in off.items():
        yield create_warning_finding(
            WORKER_CLOCKS,
            f"the clock of the worker at {address} is {format_duration(abs(seconds))} "
            f"{'ahead of' if seconds > 0 else 'behind'} that of this process",
            consequence,
            f"{_ADVICE}{_describe_aftermath(seconds, stamped)}",
        )
    if ahead and not off:
        places = name_partitions([str(p) for p in sorted(ahead)])
        names = sorted({owners[p] for p in ahead if p in owners})
        seen = format_command("group describe") + " shows who has the task"
        yield create_warning_finding(
            WORKER_CLOCKS,
            f"the worker that has committed {places} has, or had, a clock that is "
            f"{format_duration(max(ahead.values()))} ahead of this machine's, by the numbers of "
            "its commits" + (f"; now it is that of {' and '.join(names)}" if names else ""),
            consequence,
            f"{_ADVICE}{'' if names else f'; {seen}'}"
            f"{_describe_aftermath(max(ahead.values()), stamped)} The numbers of commits stay "
            "ahead until the time has caught up with them, which by itself does no harm",
        )
    if not off and not ahead:
        yield create_fine_finding(WORKER_CLOCKS, "no commit is ahead of this machine's clock")


_CONSEQUENCE = (
    "timers by the wall clock, timestamps of records without one of their own, and retention by "
    "these are off by so much"
)
_ADVICE = (
    "let that machine take the time from the source that the brokers have (chrony, "
    "systemd-timesyncd): `timedatectl` there"
)


def _describe_aftermath(seconds: float, stamped: Collection[str] | None) -> str:
    """Return what follows once a clock that was ahead is right; empty if nothing does.

    Stream time does not go back, and commits keep it, so that it outlives a restart.
    """
    if seconds < 0 or (stamped is not None and not stamped):
        return "."
    condition = "" if stamped else ", where timestamp_extractor is wallclock,"
    return (
        f". Once it is right{condition} stream time of these tasks stays where it is, also over a "
        f"restart, until the clock has caught up with it ({format_duration(seconds)}): meanwhile "
        "records whose window, with its grace, is over by stream time are dropped as late."
    )


def name_owners(
    report: GroupReport, local: Sequence[LocalWorker], state_path: Path
) -> dict[Partition, str]:
    """Return words for the member that has each partition, and for its process if it is here."""
    here = {each.process: each for each in local}
    found: dict[Partition, str] = {}
    for member in report.members:
        words = f"member {member.instance_id or member.member_id} at {member.host}"
        if (worker := here.get(member.process)) is not None:
            words += f", on this machine {worker.holder} in {state_path / worker.slot}"
        for task in member.active:
            found |= {Partition(each.topic, each.partition): words for each in task.partitions}
    return found


def list_stamped_topics(topology: Topology) -> set[str]:
    """Return the inputs whose records get the time at which they are processed."""
    return {
        topic
        for sub in topology.subtopologies
        for topic, source in sub.sources.items()
        if source.timestamp_extractor is TimestampPolicy.WALLCLOCK
    }
