"""Summarise what workers and brokers tell Prometheus, for a person at a terminal.

A scrape is the samples of one process by name. Rates come from two scrapes of the same process;
a figure that no process has is None, which is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

FreeBytes: TypeAlias = float
TotalBytes: TypeAlias = float

_LATENCY = "millrace_end_to_end_latency_seconds"
_QUERY_LATENCY = "millrace_query_latency_seconds"
_TASKS = "kafka_streams_stream_task_metrics"
_LAG = "millrace_consumer_lag"
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
    that gave no answer. `lag_growth` is that between the two looks, of workers that answered both;
    `stalled_commit_age_s` the longest age of a commit where records waited all the time and none
    was committed; 0 where all was. Of several disks the one with the least room is told.
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
    unhealthy: int = 0
    threads_replaced: float | None = None
    busiest_thread_ratio: float | None = None
    lag_growth: float | None = None
    commit_interval_s: float | None = None
    stalled_commit_age_s: float | None = None
    rebalance_age_s: float | None = None
    recovery_age_s: float | None = None
    state_disk_free_bytes: float | None = None
    state_disk_total_bytes: float | None = None
    transactions_overdue: float | None = None
    broker_disk_free_ratio: float | None = None


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
    busy = find_rate("millrace_task_process_seconds_total")
    dropped = [
        each
        for each in (
            find_rate("millrace_thread_dropped_total"),
            _combine_values(now, f"{_TASKS}_dropped_records_rate", sum),
        )
        if each is not None
    ]
    return MetricsOutput(
        addresses=list(after),
        unanswered=list(unanswered),
        states=_count_by_label(now, "millrace_worker_state", "state"),
        threads=threads,
        threads_stuck=sum(each.value > 0 for each in stuck),
        tasks=_count_by_label(now, "millrace_thread_tasks", "state"),
        unhealthy=sum(each.value == 0 for each in _list_samples(now, "millrace_worker_healthy")),
        records_in_rate=find_rate("millrace_thread_records_total"),
        end_to_end_latency_p99_s=_find_latency_p99(before, after, _LATENCY),
        process_ratio=_compute_busy_share(busy, threads),
        busiest_thread_ratio=_find_busiest_ratio(before, after, elapsed_s),
        dropped_rate=max(dropped, default=None),
        dead_letters_rate=find_rate("millrace_thread_dead_letters_total"),
        lag_growth=_find_lag_growth(before, after),
        stalled_commit_age_s=_find_stalled_commit_age_s(before, after, elapsed_s),
        queries_rate=find_query_rate(),
        queries_failed_rate=find_query_rate(is_counted=_is_failed_query),
        query_latency_p99_s=_find_latency_p99(before, after, _QUERY_LATENCY),
        **_combine_gauges(now),
    )


def _compute_busy_share(busy: float | None, threads: int) -> float | None:
    """Return the share of the time that threads process; None where it is not known.

    A slice is counted when it ends, with what it took before the first look: no share is above 1.
    """
    return min(busy / threads, 1.0) if busy is not None and threads else None


def _combine_gauges(now: Sequence[Scrape]) -> dict[str, Any]:
    """Return the fields that one look tells, of all processes together."""
    found: dict[str, Any] = {
        field: _combine_values(now, name, function) for field, (name, function) in _GAUGES.items()
    }
    commit_ms = _combine_values(now, "kafka_streams_stream_thread_metrics_commit_latency_max", max)
    found["commit_latency_max_s"] = None if commit_ms is None else commit_ms / _MS
    state_disk = _find_fullest_disk(now, "millrace_state_disk")
    found["state_disk_free_bytes"], found["state_disk_total_bytes"] = state_disk
    free, total = _find_fullest_disk(now, "millrace_disk")
    found["broker_disk_free_ratio"] = free / total if free is not None and total else None
    return found


_GAUGES: Mapping[str, tuple[str, Callable[[Sequence[float]], float]]] = {
    "lag": (_LAG, sum),
    "commit_age_max_s": ("millrace_thread_commit_age_seconds", max),
    "recoveries": ("millrace_thread_recoveries_total", sum),
    "restore_records_left": ("millrace_restore_records_left", sum),
    "standby_lag_max": ("millrace_standby_lag", max),
    "stores_disk_bytes": ("millrace_store_disk_bytes", sum),
    "oldest_open_transaction_s": ("millrace_transaction_oldest_open_seconds", max),
    "threads_replaced": ("millrace_thread_replaced_threads_total", sum),
    "commit_interval_s": ("millrace_worker_commit_interval_seconds", max),
    "rebalance_age_s": ("millrace_thread_rebalance_age_seconds", min),
    "recovery_age_s": ("millrace_thread_recovery_age_seconds", min),
    "transactions_overdue": ("millrace_transactions_overdue", sum),
}
"""By field the figure, and how those of several threads and processes are combined."""


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


def _find_busiest_ratio(
    before: Mapping[str, Scrape], after: Mapping[str, Scrape], elapsed_s: float
) -> float | None:
    """Return the share of the time in which the busiest thread has processed records."""
    name = "millrace_task_process_seconds_total"
    seconds = [
        _find_increase(before[address], scrape, name, partial(_is_of_thread, thread))
        for address, scrape in after.items()
        if address in before
        for thread in {each.labels.get("thread", "") for each in scrape.get(name, ())}
    ]
    return min(max(seconds) / elapsed_s, 1.0) if seconds else None


def _find_lag_growth(before: Mapping[str, Scrape], after: Mapping[str, Scrape]) -> float | None:
    """Return by how many records the lag has grown, at the addresses of both looks."""
    both = [address for address in after if address in before and _LAG in after[address]]
    if not both:
        return None
    now, then = (
        sum(each.value for address in both for each in scrapes[address].get(_LAG, ()))
        for scrapes in (after, before)
    )
    return now - then


def _find_stalled_commit_age_s(
    before: Mapping[str, Scrape], after: Mapping[str, Scrape], elapsed_s: float
) -> float | None:
    """Return the longest age of a commit of a thread that had a lag in both looks and no commit.

    Looks closer together than the commit interval say nothing: a record may have come just before.
    None if no thread tells the age of its last commit.
    """
    age_name, commits_name = "millrace_thread_commit_age_seconds", "millrace_thread_commits_total"
    ages_s: list[float] = []
    for address, scrape in after.items():
        interval_s = _combine_values([scrape], "millrace_worker_commit_interval_seconds", max)
        for age in scrape.get(age_name, ()):
            has_thread = partial(_is_of_thread, age.labels["thread"])
            is_stalled = (
                address in before
                and elapsed_s >= (interval_s or 0.0)
                and any(map(has_thread, _list_samples_with_lag(before[address])))
                and any(map(has_thread, _list_samples_with_lag(scrape)))
                and not _find_increase(before[address], scrape, commits_name, has_thread)
            )
            ages_s.append(age.value if is_stalled else 0.0)
    return max(ages_s, default=None)


def _list_samples_with_lag(scrape: Scrape) -> list[Sample]:
    return [each for each in scrape.get(_LAG, ()) if each.value > 0]


def _is_of_thread(thread: str, sample: Sample) -> bool:
    return sample.labels.get("thread", "") == thread


def _find_fullest_disk(
    scrapes: Sequence[Scrape], prefix: str
) -> tuple[FreeBytes | None, TotalBytes | None]:
    """Return the free and all bytes of the disk with the smallest share that is free."""
    disks = [
        (free.value, total.value)
        for scrape in scrapes
        for free, total in zip(
            scrape.get(f"{prefix}_free_bytes", ()),
            scrape.get(f"{prefix}_total_bytes", ()),
            strict=False,
        )
        if total.value
    ]
    return min(disks, key=lambda disk: disk[0] / disk[1], default=(None, None))


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


def _find_latency_p99(
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
