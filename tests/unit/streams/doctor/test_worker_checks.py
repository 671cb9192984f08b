"""Test the checks of what workers answer at /health and /metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from streams.doctor import workers
from streams.doctor.findings import DoctorFinding, Verdict
from streams.doctor.workers import WorkerFacts
from streams.monitoring.scraped_figures import Scrape, parse_scrape, summarise_scrapes
from streams.settings.config import StreamsConfig

FINE, WARNING, ERROR = Verdict.FINE, Verdict.WARNING, Verdict.ERROR
WORKER = "localhost:8080"


def verdicts(found: Iterable[DoctorFinding]) -> list[Verdict]:
    return [each.verdict for each in found]


def scrape(**values: float) -> Scrape:
    """Return a scrape of one thread, with these figures."""
    values = {"thread_stuck": 0, **values}
    lines = [
        f'{name if name.startswith("kafka") else f"millrace_{name}"}{{thread="t"}} {value}\n'
        for name, value in values.items()
    ]
    return parse_scrape("".join(lines))


def facts(
    before: Mapping[str, float],
    after: Mapping[str, float],
    *healths: Mapping[str, Any],
    uptime_s: float = 3_600.0,
) -> WorkerFacts:
    first, second = {WORKER: scrape(**before)}, {WORKER: scrape(**after)}
    summary = summarise_scrapes(first, second, 1.0)
    reports = {WORKER: list(healths)} if healths else {}
    return WorkerFacts(first, second, summary, 1.0, reports, 0, {WORKER: uptime_s})


def test_what_a_worker_says_of_its_health() -> None:
    assert verdicts(workers.check_health(facts({}, {}))) == []
    assert verdicts(workers.check_health(facts({}, {}, {"why": []}))) == [FINE]
    sick = facts({}, {}, {"why": ["t has been in f for 31 s"]})
    (found,) = workers.check_health(sick)
    assert (found.verdict, "in f for 31 s" in found.what) == (ERROR, True)


def test_a_worker_that_does_not_answer_beside_one_that_is_healthy_is_an_error() -> None:
    stopped = replace(facts({}, {}, {"why": []}), unanswered=("127.0.0.1:8081",))
    (found,) = workers.check_health(stopped)
    assert (found.verdict, found.what) == (ERROR, "the worker at 127.0.0.1:8081 does not answer")


PROCESSED = {"task_process_seconds_total": 10.0, "thread_records_total": 100.0}


def test_a_slow_function_is_named_with_what_a_record_takes() -> None:
    thread = {"doing": "user function", "what": "slow (jobs.py:7)"}
    busy = {"task_process_seconds_total": 10.95, "thread_records_total": 105.0}
    (found,) = workers.check_processing(
        facts(PROCESSED, busy, {"threads": [thread]}), StreamsConfig()
    )
    assert found.verdict is WARNING
    assert "95%" in found.what
    assert "190 ms a record" in found.what
    assert "slow (jobs.py:7)" in found.what


@pytest.mark.parametrize(
    ("busy_s", "lag", "expected"),
    [(0.95, 0, WARNING), (0.7, 2_000, WARNING), (0.7, 500, FINE), (0.3, 2_000, FINE)],
)
def test_threads_that_can_take_no_more(busy_s: float, lag: int, expected: Verdict) -> None:
    later = {"task_process_seconds_total": 10.0 + busy_s, "thread_records_total": 200.0}
    found = workers.check_processing(facts(PROCESSED, later), StreamsConfig(), lag)
    assert verdicts(found) == [expected]


@pytest.mark.parametrize(("longest_ms", "expected"), [(40.0, FINE), (160_000.0, ERROR)])
def test_slices_near_max_poll_interval(longest_ms: float, expected: Verdict) -> None:
    idle = facts(
        PROCESSED,
        {**PROCESSED, "kafka_streams_stream_thread_metrics_process_latency_max": longest_ms},
    )
    assert verdicts(workers.check_processing(idle, StreamsConfig())) == [expected]


@pytest.mark.parametrize(("longest_ms", "expected"), [(40.0, FINE), (6_000.0, WARNING)])
def test_slow_commits(longest_ms: float, expected: Verdict) -> None:
    name = "kafka_streams_stream_thread_metrics_commit_latency_max"
    assert verdicts(workers.check_commits(facts({}, {name: longest_ms}))) == [expected]


def test_dropped_records() -> None:
    dropped = "thread_dropped_total"
    assert verdicts(workers.check_dropped(facts({dropped: 3}, {dropped: 3}))) == [FINE]
    assert verdicts(workers.check_dropped(facts({dropped: 3}, {dropped: 5}))) == [WARNING]


@pytest.mark.parametrize(
    ("before", "after", "uptime_s", "expected"),
    [(2, 2, 3_600, FINE), (2, 3, 3_600, WARNING), (50, 50, 3_600, WARNING), (50, 50, 90_000, FINE)],
)
def test_recoveries_again_and_again(
    before: int, after: int, uptime_s: float, expected: Verdict
) -> None:
    name = "thread_recoveries_total"
    kinds = {"thread_tasks_migrated_total": after}
    found = workers.check_recoveries(
        facts({name: before}, {name: after, **kinds}, uptime_s=uptime_s)
    )
    assert verdicts(found) == [expected]
