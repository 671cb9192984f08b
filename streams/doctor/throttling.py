"""Check whether quotas throttle the workers of this machine, by the figures of their clients.

A broker that throttles a client answers at once, with a time for which it is to wait, and takes
nothing from it meanwhile. So the doctor's own small requests need not be throttled while producers
of the same user or client id are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streams.command_lines import format_kafka_command
from streams.common.counted import format_count
from streams.doctor.findings import (
    DoctorFinding,
    create_fine_finding,
    create_unknown_finding,
    create_warning_finding,
)
from streams.doctor.workers import WorkerSamples

QUOTAS = "quotas"
_THROTTLE_MAX_MS = 100.0
"""The time between commits that is the default with exactly once."""
_MS = 1_000
_FIGURES = {
    "kafka_producer_producer_metrics_produce_throttle_time_max": ("producer", "producer_byte_rate"),
    "kafka_consumer_consumer_fetch_manager_metrics_fetch_throttle_time_max": (
        "consumer",
        "consumer_byte_rate",
    ),
}
"""The figures that tell of throttling, with the kind of client and the quota by bytes."""


def find_longest_throttles(facts: WorkerSamples) -> Mapping[str, tuple[float, str]]:
    """Return the longest time in ms that brokers throttled each kind of client, and which client.

    The figures are of the last seconds before each of the two looks. Kinds that were not throttled
    are left out.
    """
    longest: dict[str, tuple[float, str]] = {}
    for scrape in (*facts.before.values(), *facts.after.values()):
        for name in _FIGURES:
            for sample in scrape.get(name, ()):
                found = sample.value, sample.labels.get("client_id", "")
                if sample.value > longest.get(name, (0.0, ""))[0]:
                    longest[name] = found
    return longest


def check_throttling(facts: WorkerSamples) -> Iterator[DoctorFinding]:
    """Find clients of workers that brokers make wait by a quota."""
    longest = find_longest_throttles(facts)
    throttled = {name: e for name, e in longest.items() if e[0] > _THROTTLE_MAX_MS}
    for name, (throttle_ms, client_id) in throttled.items():
        kind, quota = _FIGURES[name]
        shown = f" {client_id}" if client_id else ""
        yield create_warning_finding(
            QUOTAS,
            f"brokers throttle the {kind}{shown} by up to {throttle_ms / _MS:.1f} s: a quota of "
            "this user or client id",
            "commits wait so long, and results come late; transactions may run into their time-out"
            if kind == "producer"
            else "records are read no faster than the quota lets them, and the lag grows",
            f"find the quota ({quota} or request_percentage), "
            + format_kafka_command("kafka-configs.sh", "--describe", "--entity-type", "clients")
            + " and so with users, and raise it with --alter --add-config",
        )
    if throttled or not facts.after:
        return
    known = sum(any(scrape.get(name) for name in _FIGURES) for scrape in facts.after.values())
    if not known:
        yield create_unknown_finding(QUOTAS, "no worker tells for how long its clients wait")
        return
    worst_ms = max((each for each, _ in longest.values()), default=0.0)
    yield create_fine_finding(
        QUOTAS, f"{format_count(known, 'worker')} throttled by {worst_ms:.0f} ms at most"
    )
