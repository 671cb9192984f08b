"""Summarise what workers and brokers tell Prometheus, for a person at a terminal.

A scrape is the samples of one process by name. Rates come from two scrapes of the same process;
a figure that no process has is None, which is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

_LATENCY = "millrace_end_to_end_latency_seconds"
_QUERY_LATENCY = "millrace_query_latency_seconds"
_QUANTILE = 0.99
_MS = 1_000


class Sample(NamedTuple):
    """Represents one sample of a scrape."""

    labels: Mapping[str, str]
    value: float


Scrape = Mapping[str, Sequence[Sample]]
"""The samples of one process by their names, as `millrace_thread_records_total`."""


@dataclass(frozen=True)
class MetricsOutput:
    """Summarises workers, and brokers; null is what none of them tells. Rates are by second.

    `states` counts workers by state, `tasks` their tasks by state, and `unanswered` names addresses
    that gave no answer.
    """

    addresses: list[str]
    unanswered: list[str]
    states: dict[str, int] = field(default_factory=dict)
    threads: int = 0
    threads_stuck: int = 0
    tasks: dict[str, int] = field(default_factory=dict)
    records_in_rate: float | None = None
    lag: float | None = None
    commit_latency_max_s: float | None = None
    commit_age_max_s: float | None = None
    end_to_end_latency_p99_s: float | None = None
    process_ratio: float | None = None
    dropped_rate: float | None = None
    dead_letters_rate: float | None = None
    recoveries: float | None = None
    restore_records_left: float | None = None
    standby_lag_max: float | None = None
    stores_disk_bytes: float | None = None
    oldest_open_transaction_s: float | None = None
    queries_rate: float | None = None
    queries_failed_rate: float | None = None
    query_latency_p99_s: float | None = None


def parse_scrape(text: str) -> Scrape:
    """Return the samples of Prometheus' text format. Raises ValueError for another text."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(Sample(sample.labels, sample.value))
    return found


def summarise_scrapes(
    before: Mapping[str, Scrape],
    after: Mapping[str, Scrape],
    elapsed_s: float,
    unanswered: Sequence[str] = (),
) -> MetricsOutput:
    """Return the summary of scrapes by address, with rates since the scrapes before.

    A process that was started anew between the two counts from 0. One that gave no answer the time
    before is left out of rates: its whole totals would seem to be of this interval.
    """
    now = tuple(after.values())
    stuck = _list_samples(now, "millrace_thread_stuck")
    threads = len(stuck)

    def find_rate(
        name: str, is_counted: Callable[[Sample], bool] = lambda _: True, known_by: str = ""
    ) -> float | None:
        found = [
            _find_increase(before[address], scrape, name, is_counted)
            for address, scrape in after.items()
            if (known_by or name) in scrape and address in before
        ]
        return sum(found) / elapsed_s if found else None

    # The histogram of queries has no samples before the first query: it is known by the gauge.
    find_query_rate = partial(
        find_rate, f"{_QUERY_LATENCY}_count", known_by="millrace_query_requests_running"
    )
    commit_ms = _combine_values(now, "kafka_streams_stream_thread_metrics_commit_latency_max", max)
    busy = find_rate("millrace_task_process_seconds_total")
    return MetricsOutput(
        addresses=list(after),
        unanswered=list(unanswered),
        states=_count_by_label(now, "millrace_worker_state", "state"),
        threads=threads,
        threads_stuck=sum(each.value > 0 for each in stuck),
        tasks=_count_by_label(now, "millrace_thread_tasks", "state"),
        records_in_rate=find_rate("millrace_thread_records_total"),
        lag=_combine_values(now, "millrace_consumer_lag", sum),
        commit_latency_max_s=None if commit_ms is None else commit_ms / _MS,
        commit_age_max_s=_combine_values(now, "millrace_thread_commit_age_seconds", max),
        end_to_end_latency_p99_s=_find_latency(before, after, _LATENCY),
        process_ratio=busy / threads if busy is not None and threads else None,
        dropped_rate=find_rate("millrace_thread_dropped_total"),
        dead_letters_rate=find_rate("millrace_thread_dead_letters_total"),
        recoveries=_combine_values(now, "millrace_thread_recoveries_total", sum),
        restore_records_left=_combine_values(now, "millrace_restore_records_left", sum),
        standby_lag_max=_combine_values(now, "millrace_standby_lag", max),
        stores_disk_bytes=_combine_values(now, "millrace_store_disk_bytes", sum),
        oldest_open_transaction_s=_combine_values(
            now, "millrace_transaction_oldest_open_seconds", max
        ),
        queries_rate=find_query_rate(),
        queries_failed_rate=find_query_rate(is_counted=_is_failed_query),
        query_latency_p99_s=_find_latency(before, after, _QUERY_LATENCY),
    )


def _list_samples(scrapes: Sequence[Scrape], name: str) -> list[Sample]:
    return [sample for scrape in scrapes for sample in scrape.get(name, ())]


def _combine_values(
    scrapes: Sequence[Scrape], name: str, function: Callable[[Sequence[float]], float]
) -> float | None:
    """Return the values of a name, combined; None if there are none."""
    values = [each.value for each in _list_samples(scrapes, name)]
    return function(values) if values else None


def _count_by_label(scrapes: Sequence[Scrape], name: str, label: str) -> dict[str, int]:
    """Return the sums of a name's samples by one of its labels, those of 0 left out."""
    found: dict[str, int] = {}
    for each in _list_samples(scrapes, name):
        if each.value:
            key = each.labels.get(label, "")
            found[key] = found.get(key, 0) + int(each.value)
    return found


def _is_failed_query(sample: Sample) -> bool:
    """Return whether a sample counts responses of HTTP that say that the worker failed: 5xx."""
    return sample.labels.get("status", "").startswith("5")


def _find_increase(
    before: Scrape, after: Scrape, name: str, is_counted: Callable[[Sample], bool] = lambda _: True
) -> float:
    """Return by how much the counters of a name have risen, those together that are counted."""
    then = {tuple(sorted(each.labels.items())): each.value for each in before.get(name, ())}
    increase = 0.0
    for each in filter(is_counted, after.get(name, ())):
        former = then.get(tuple(sorted(each.labels.items())), 0.0)
        increase += each.value - former if each.value >= former else each.value
    return increase


def _is_in_bucket(bound: str, sample: Sample) -> bool:
    return sample.labels["le"] == bound


def _find_latency(
    before: Mapping[str, Scrape], after: Mapping[str, Scrape], histogram: str
) -> float | None:
    """Return the upper bound of the bucket with the 99th percentile of what came in between.

    None if nothing came.
    """
    name = f"{histogram}_bucket"
    counts: dict[float, float] = {}
    for address, scrape in after.items():
        if address not in before:
            continue
        for bound in {each.labels["le"] for each in scrape.get(name, ())}:
            is_counted = partial(_is_in_bucket, bound)
            increase = _find_increase(before[address], scrape, name, is_counted)
            counts[float(bound)] = counts.get(float(bound), 0.0) + increase
    total = max(counts.values(), default=0.0)
    if not total:
        return None
    return min(bound for bound, count in counts.items() if count >= _QUANTILE * total)
