"""Check the load of coordinators: how soon they answer, and what waits in an embedded broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streams.doctor.findings import DoctorFinding, create_fine_finding, create_warning_finding
from streams.doctor.latencies import LATE_S
from streams.monitoring.scraped_figures import Scrape

COORDINATORS = "load of coordinators"
_QUEUE_MAX, _APPEND_MAX_S = 1_000, 1.0
_MS = 1_000


@dataclass(frozen=True, slots=True)
class CoordinatorTimes:
    """Holds how soon coordinators answer a request that changes nothing, in seconds."""

    by_coordinator: Mapping[str, float]


def check_answer_times(times: CoordinatorTimes) -> Iterator[DoctorFinding]:
    """Find a coordinator that answers late."""
    slow = {name: each for name, each in times.by_coordinator.items() if each > LATE_S}
    for name, seconds in slow.items():
        yield create_warning_finding(
            COORDINATORS,
            f"the {name} coordinator takes {seconds:.1f} s to answer",
            "commits and heartbeats wait: transactions time out, and members are taken for dead",
            "look at the load and the disk of its broker; commit less often "
            "(commit_interval_ms), or move partitions of its topic to another broker",
        )
    if times.by_coordinator and not slow:
        shown = ", ".join(
            f"{name} {each * _MS:.0f} ms" for name, each in times.by_coordinator.items()
        )
        yield create_fine_finding(COORDINATORS, f"answers: {shown}")


def check_coordinator_figures(scrape: Scrape) -> Iterator[DoctorFinding]:
    """Check what an embedded broker tells of its coordinators."""
    queued = max((each.value for each in scrape.get("millrace_shard_events_queued", ())), default=0)
    append_s = max(
        (each.value for each in scrape.get("millrace_shard_append_seconds_max", ())), default=0.0
    )
    if queued > _QUEUE_MAX or append_s > _APPEND_MAX_S:
        yield create_warning_finding(
            COORDINATORS,
            f"{queued:,.0f} events wait at one shard, and the longest write took {append_s:.2f} s",
            "commits and heartbeats wait",
            "look at the disk of the broker; commit less often (commit_interval_ms)",
        )
    else:
        yield create_fine_finding(
            COORDINATORS, f"{queued:,.0f} events wait; longest write {append_s * _MS:.0f} ms"
        )
