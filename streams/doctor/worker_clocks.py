"""Check the clocks of workers, by the numbers of their commits and by the date of their /health.

The number of a commit is the wall clock of its worker in ms, or one more than the number before
(`streams.runtime.offsets.offset_metadata`). So one of the future shows that a clock was ahead when
it was made, on any machine; a clock that is behind shows at /health only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams.command_lines import format_command
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor.durations import format_duration
from streams.doctor.findings import DoctorFinding, create_fine_finding, create_warning_finding
from streams.doctor.topics import name_partitions
from streams.runtime.offsets.offset_metadata import decode_metadata

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
    ahead: Mapping[Partition, float], clocks_ahead_s: Mapping[str, float]
) -> Iterator[DoctorFinding]:
    """Find workers whose clock is off: `ahead` by their commits, `clocks_ahead_s` by /health."""
    off = {a: s for a, s in clocks_ahead_s.items() if abs(s) > _AHEAD_MAX_S}
    for address, seconds in off.items():
        yield create_warning_finding(
            WORKER_CLOCKS,
            f"the clock of the worker at {address} is {format_duration(abs(seconds))} "
            f"{'ahead of' if seconds > 0 else 'behind'} that of this process",
            _CONSEQUENCE,
            _advise_time_source(),
        )
    if ahead and not off:
        places = name_partitions([str(p) for p in sorted(ahead)])
        yield create_warning_finding(
            WORKER_CLOCKS,
            f"the worker that has committed {places} has, or had, a clock that is "
            f"{format_duration(max(ahead.values()))} ahead of this machine's, by the numbers of "
            "its commits",
            _CONSEQUENCE,
            f"{_advise_time_source()}. The numbers stay ahead until the time has caught up with "
            "them, which does no harm",
        )
    if not off and not ahead:
        yield create_fine_finding(WORKER_CLOCKS, "no commit is ahead of this machine's clock")


_CONSEQUENCE = (
    "timers by the wall clock, timestamps of records without one of their own, and retention by "
    "these are off by so much"
)


def _advise_time_source() -> str:
    return (
        "let that machine take the time from the source that the brokers have (chrony, "
        f"systemd-timesyncd): `timedatectl` there; {format_command('group describe')} shows who "
        "has the task"
    )
