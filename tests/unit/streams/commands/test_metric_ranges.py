"""Test which figures `millrace metrics` marks: none of a healthy worker, one for each fault."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from streams.commands.metric_ranges import list_metric_rows
from streams.monitoring.scraped_figures import Scrape, parse_scrape, summarise_scrapes

WORKER, BROKER = "w:8080", "b:9404"
INTERVAL_S = 0.1
HEALTHY: dict[str, float] = {
    'millrace_worker_state{state="RUNNING"}': 1,
    "millrace_worker_healthy": 1,
    "millrace_worker_live": 1,
    "millrace_worker_commit_interval_seconds": INTERVAL_S,
    "millrace_state_disk_free_bytes": 50e9,
    "millrace_state_disk_total_bytes": 100e9,
    'millrace_thread_stuck{thread="t",where=""}': 0,
    'millrace_thread_tasks{thread="t",state="RUNNING"}': 2,
    'millrace_thread_records_total{thread="t"}': 1_000,
    'millrace_thread_commits_total{thread="t"}': 100,
    'millrace_thread_dropped_total{thread="t"}': 0,
    'millrace_thread_dead_letters_total{thread="t"}': 0,
    'millrace_thread_replaced_threads_total{thread="t"}': 0,
    'millrace_thread_recoveries_total{thread="t"}': 0,
    'millrace_thread_commit_age_seconds{thread="t"}': 0.05,
    'millrace_consumer_lag{thread="t",topic="in",partition="0"}': 40,
    'millrace_task_process_seconds_total{thread="t",task="0_0"}': 3,
    'kafka_streams_stream_thread_metrics_commit_latency_max{thread_id="t"}': 30,
    'kafka_streams_stream_task_metrics_dropped_records_rate{thread_id="t",task_id="0_0"}': 0,
    'millrace_restore_records_left{thread="t",task="0_0",store="s"}': 0,
    'millrace_standby_lag{thread="t",task="0_1",store="s"}': 30,
    'millrace_store_disk_bytes{task="0_0",store="s"}': 2e9,
}
AFTER = {
    'millrace_thread_records_total{thread="t"}': 1_500,
    'millrace_thread_commits_total{thread="t"}': 110,
    'millrace_task_process_seconds_total{thread="t",task="0_0"}': 3.4,
}
"""What is another value a second later."""
HEALTHY_BROKER: dict[str, float] = {
    "millrace_transaction_oldest_open_seconds": 0.1,
    "millrace_transactions_overdue": 0,
    "millrace_disk_free_bytes": 40e9,
    "millrace_disk_total_bytes": 100e9,
}
LAG = 'millrace_consumer_lag{thread="t",topic="in",partition="0"}'
AGE = 'millrace_thread_commit_age_seconds{thread="t"}'
COMMITS = 'millrace_thread_commits_total{thread="t"}'
RECORDS = 'millrace_thread_records_total{thread="t"}'


def scrape(samples: Mapping[str, float]) -> Scrape:
    return parse_scrape("".join(f"{name} {value}\n" for name, value in samples.items()))


def list_marked(
    changes: Mapping[str, float],
    before: Mapping[str, float] | None = None,
    *,
    elapsed_s: float = 1.0,
) -> set[str]:
    """Return the names of the marked lines, with changes of the second look and of the first."""
    worker = HEALTHY | AFTER
    broker = dict(HEALTHY_BROKER)
    for name, value in changes.items():
        (broker if name in broker else worker)[name] = value
    found = summarise_scrapes(
        {WORKER: scrape(HEALTHY | dict(before or {})), BROKER: scrape(HEALTHY_BROKER)},
        {WORKER: scrape(worker), BROKER: scrape(broker)},
        elapsed_s,
    )
    return {row.name for row in list_metric_rows(found) if not row.is_normal}


def test_a_healthy_worker_has_no_mark() -> None:
    assert list_marked({}) == set()


@pytest.mark.parametrize(
    ("changes", "before"),
    [
        # Nothing comes: the last commit is long ago, and nothing waits.
        ({LAG: 0, AGE: 9_000, COMMITS: 100, RECORDS: 1_000}, {LAG: 0}),
        # The first record after a long time.
        ({LAG: 1, AGE: 9_000, COMMITS: 100, RECORDS: 1_000}, {LAG: 0}),
        # A lot comes, and what is not committed yet is a lot too.
        ({LAG: 20_000, RECORDS: 101_000}, {LAG: 19_000}),
        # A few records a second, one of which waits for its commit.
        ({LAG: 3, RECORDS: 1_000}, {LAG: 3}),
        # It has nearly caught up.
        ({LAG: 6_000}, {LAG: 6_500}),
        # A rebalance and a recovery that are over for long.
        ({'millrace_thread_rebalance_age_seconds{thread="t"}': 1_000}, {}),
        ({'millrace_thread_recovery_age_seconds{thread="t"}': 1_000}, {}),
        # A disk that is nearly full, with room for all that the stores may need.
        ({"millrace_state_disk_free_bytes": 3e9}, {}),
    ],
)
def test_what_may_be_so_in_a_healthy_worker_has_no_mark(
    changes: dict[str, float], before: dict[str, float]
) -> None:
    assert list_marked(changes, before) == set()


@pytest.mark.parametrize(
    ("marked", "changes", "before"),
    [
        ("workers", {"millrace_worker_healthy": 0}, {}),
        ("workers", {'millrace_worker_state{state="REBALANCING"}': 1}, {}),
        ("threads", {'millrace_thread_stuck{thread="t",where=""}': 1}, {}),
        ("threads", {'millrace_thread_replaced_threads_total{thread="t"}': 1}, {}),
        ("last rebalance", {'millrace_thread_rebalance_age_seconds{thread="t"}': 20}, {}),
        ("last recovery", {'millrace_thread_recovery_age_seconds{thread="t"}': 20}, {}),
        # A function takes 0.2 s for a record, and more come.
        ("lag", {LAG: 80, RECORDS: 1_005}, {LAG: 70}),
        # As much comes as is processed, and it stays behind by a minute.
        ("lag", {LAG: 30_000}, {LAG: 30_000}),
        ("lag", {LAG: 30_000}, {LAG: 30_500}),
        (
            "longest commit",
            {'kafka_streams_stream_thread_metrics_commit_latency_max{thread_id="t"}': 7_000},
            {},
        ),
        ("since the last commit", {AGE: 7, COMMITS: 100}, {AGE: 6}),
        (
            "busiest thread",
            {'millrace_task_process_seconds_total{thread="t",task="0_0"}': 3.97},
            {},
        ),
        ("dropped", {'millrace_thread_dropped_total{thread="t"}': 1}, {}),
        # It was dropped half a minute ago, between two looks.
        (
            "dropped",
            {
                "kafka_streams_stream_task_metrics_dropped_records_rate"
                '{thread_id="t",task_id="0_0"}': 0.03
            },
            {},
        ),
        ("dead letters", {'millrace_thread_dead_letters_total{thread="t"}': 1}, {}),
        (
            "left to restore",
            {'millrace_restore_records_left{thread="t",task="0_0",store="s"}': 7},
            {},
        ),
        ("standby lag", {'millrace_standby_lag{thread="t",task="0_1",store="s"}': 20_000}, {}),
        ("free for them", {"millrace_state_disk_free_bytes": 1.5e9}, {}),
        ("oldest transaction", {"millrace_transaction_oldest_open_seconds": 40}, {}),
        ("oldest transaction", {"millrace_transactions_overdue": 1}, {}),
        ("broker's disk, free", {"millrace_disk_free_bytes": 4e9}, {}),
    ],
)
def test_a_fault_marks_its_figure_and_no_other(
    marked: str, changes: dict[str, float], before: dict[str, float]
) -> None:
    assert list_marked(changes, before) == {marked}


def test_the_busiest_of_several_threads_is_marked() -> None:
    other = 'millrace_task_process_seconds_total{thread="u",task="0_1"}'
    stuck = {'millrace_thread_stuck{thread="u",where=""}': 0}
    assert list_marked({other: 0.95, **stuck}, {other: 0, **stuck}) == {"busiest thread"}


def test_a_worker_that_gives_no_answer_is_marked() -> None:
    found = summarise_scrapes({}, {}, 1.0, ["w:8081: refused"])
    assert [row.name for row in list_metric_rows(found) if not row.is_normal] == ["workers"]


def test_a_commit_of_a_longer_interval_than_the_look_is_not_judged() -> None:
    interval = {"millrace_worker_commit_interval_seconds": 30}
    waiting = {AGE: 400, COMMITS: 100, **interval}
    assert list_marked(waiting, interval) == set()
    assert list_marked(waiting, interval, elapsed_s=30) == {"since the last commit"}
