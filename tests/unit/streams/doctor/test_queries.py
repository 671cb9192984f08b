"""Test the checks of queries that workers answer, and of workers that answer none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from streams.doctor.findings import DoctorFinding, Verdict
from streams.doctor.queries import check_endpoints, check_queries
from streams.doctor.symptom_codes import add_symptom_code
from streams.doctor.workers import WorkerSamples
from streams.membership.protocol import SubscriptionInfo
from streams.monitoring.scraped_figures import Scrape, parse_scrape, summarise_scrapes

WORKER = "localhost:8080"
QUIET = {"millrace_query_requests_running": 0.0}
LATENCY = "millrace_query_latency_seconds"


def scrape(values: Mapping[str, float]) -> Scrape:
    return parse_scrape("".join(f"{name} {value}\n" for name, value in values.items()))


def look(before: Mapping[str, float], after: Mapping[str, float]) -> list[DoctorFinding]:
    """Return what is found between two looks, two seconds apart."""
    first, second = {WORKER: scrape(QUIET | dict(before))}, {WORKER: scrape(QUIET | dict(after))}
    summary = summarise_scrapes(first, second, 2.0)
    return list(check_queries(WorkerSamples(first, second, summary, 2.0, {})))


def answered(status: int, count: int, latency_bound_s: float = 0.05) -> dict[str, float]:
    """Return the figures of so many answers, none of which took longer."""
    label = f'status="{status}"'
    return {
        f"{LATENCY}_count{{{label}}}": count,
        f'{LATENCY}_bucket{{{label},le="0.005"}}': 0,
        f'{LATENCY}_bucket{{{label},le="{latency_bound_s}"}}': count,
        f'{LATENCY}_bucket{{{label},le="+Inf"}}': count,
    }


def test_a_worker_without_a_query_port_has_no_finding() -> None:
    silent = {WORKER: scrape({"millrace_worker_live": 1})}
    summary = summarise_scrapes(silent, silent, 2.0)
    assert list(check_queries(WorkerSamples(silent, silent, summary, 2.0, {}))) == []


def test_queries_that_are_answered_are_fine() -> None:
    (found,) = look(answered(200, 10), answered(200, 110) | answered(404, 10))
    assert (found.verdict, found.what) == (Verdict.FINE, "55 a second, and none fails")


def test_queries_that_fail_are_told_with_the_limit_that_refuses_them() -> None:
    refused = "millrace_query_requests_refused_total"
    before = answered(200, 100) | answered(503, 5) | {f'{refused}{{limit="reads"}}': 5}
    after = answered(200, 180) | answered(503, 25) | {f'{refused}{{limit="reads"}}': 12}
    (found,) = look(before, after)
    assert found.verdict is Verdict.WARNING
    assert "10 of 50 queries a second are answered with a status of 5xx" in found.what
    assert found.what.endswith(": 7 since all threads for reads that may wait were at work")
    assert add_symptom_code(found).code == "MR-080"


def test_errors_of_before_and_mistakes_of_clients_are_no_fault() -> None:
    before = answered(503, 40) | answered(400, 5)
    (found,) = look(before, answered(503, 40) | answered(400, 25))
    assert found.verdict is Verdict.FINE


@pytest.mark.parametrize(("bound_s", "is_slow"), [(2.5, False), (5.0, True)])
def test_slow_queries_are_told(bound_s: float, is_slow: bool) -> None:
    (found,) = look({}, answered(200, 100, bound_s))
    assert (found.verdict is Verdict.WARNING) == is_slow
    assert ("takes longer than 2.5 s, up to 5 s" in found.what) == is_slow


def test_queries_slower_than_all_bounds_are_told_with_the_last_of_these() -> None:
    (found,) = look({}, answered(200, 100, float("inf")) | answered(404, 1, 30.0))
    assert found.verdict is Verdict.WARNING
    assert found.what == "one of a hundred takes longer than 30 s"


def test_refusals_are_counted_from_the_start_of_a_worker_that_was_started_in_between() -> None:
    refused = "millrace_query_requests_refused_total"
    before = answered(503, 90) | {f'{refused}{{limit="reads"}}': 55}
    (found,) = look(before, answered(503, 9) | {f'{refused}{{limit="reads"}}': 7})
    assert found.what.endswith(": 7 since all threads for reads that may wait were at work")


def test_functions_that_run_on_are_named() -> None:
    name = "millrace_query_functions_overdue"
    (found,) = look({}, {f'{name}{{query="top"}}': 2, f'{name}{{query="ended"}}': 0})
    assert (found.verdict, "2 of 'top'" in found.what) == (Verdict.WARNING, True)
    assert "ended" not in found.what


@pytest.mark.parametrize(
    ("endpoints", "warning"),
    [
        (["a:1", "b:1"], ""),
        (["", ""], ""),
        (["a:1", "", "c:1"], "1 of 3 workers have no query_port"),
        ([], ""),
    ],
)
def test_workers_that_answer_nobody_beside_others_are_a_fault(
    endpoints: list[str], warning: str
) -> None:
    members = [
        SubscriptionInfo((), process=str(n), endpoint=each) for n, each in enumerate(endpoints)
    ]
    found = list(check_endpoints([*members, *members]))  # of two threads each
    assert [each.what for each in found] == ([warning] if warning else [])
