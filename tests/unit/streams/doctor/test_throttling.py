"""Test what is said of quotas that throttle the clients of workers."""

from __future__ import annotations

from streams.doctor import workers
from streams.doctor.consequences import mark_consequences
from streams.doctor.coordinators import CoordinatorTimes, check_answer_times
from streams.doctor.findings import Verdict, create_warning_finding
from streams.doctor.throttling import QUOTAS, check_throttling
from streams.doctor.workers import WorkerSamples
from streams.monitoring.scraped_figures import Scrape, parse_scrape, summarise_scrapes

WORKER = "localhost:8080"
PRODUCED = "kafka_producer_producer_metrics_produce_throttle_time_max"
FETCHED = "kafka_consumer_consumer_fetch_manager_metrics_fetch_throttle_time_max"


def facts(before: Scrape, after: Scrape) -> WorkerSamples:
    first, second = {WORKER: before}, {WORKER: after}
    return WorkerSamples(first, second, summarise_scrapes(first, second, 1.0), 1.0, {})


def scrape(figure: str, throttle_ms: float) -> Scrape:
    return parse_scrape(
        f'{figure}{{client_id="orders-1"}} {throttle_ms}\nmillrace_thread_stuck 0\n'
    )


def test_a_producer_that_is_throttled_is_named_with_its_quota() -> None:
    throttled, idle = scrape(PRODUCED, 2_833), scrape(PRODUCED, 0)
    for looks in ((throttled, idle), (idle, throttled)):
        (found,) = check_throttling(facts(*looks))
        assert found.verdict == Verdict.WARNING
        assert "the producer orders-1 by up to 2.8 s" in found.what
        assert "producer_byte_rate" in found.remedy
        assert "--entity-type clients" in found.remedy


def test_a_consumer_that_is_throttled_is_named_with_its_quota() -> None:
    (found,) = check_throttling(facts(scrape(FETCHED, 0), scrape(FETCHED, 400)))
    assert found.verdict == Verdict.WARNING
    assert "consumer_byte_rate" in found.remedy


def test_throttling_for_less_than_a_commit_interval_is_fine() -> None:
    (found,) = check_throttling(facts(scrape(PRODUCED, 0), scrape(PRODUCED, 90)))
    assert (found.verdict, found.what) == (Verdict.FINE, "1 worker throttled by 90 ms at most")


def test_workers_that_tell_no_figure_are_not_counted() -> None:
    silent = parse_scrape("millrace_thread_stuck 0\n")
    (found,) = check_throttling(facts(silent, silent))
    assert found.verdict == Verdict.NOT_LOOKED_AT
    told = scrape(PRODUCED, 7)
    looks = {WORKER: told, "localhost:8081": silent}
    (found,) = check_throttling(
        WorkerSamples(looks, looks, summarise_scrapes(looks, looks, 1.0), 1.0, {})
    )
    assert (found.verdict, found.what) == (Verdict.FINE, "1 worker throttled by 7 ms at most")


def test_long_commits_follow_from_coordinators_that_answer_late() -> None:
    (load,) = check_answer_times(CoordinatorTimes({"group": 1.6}))
    commits = create_warning_finding(workers.COMMITS, "took 6 s", "results come late", "look")
    late, _ = mark_consequences([commits, load])
    assert late.remedy.startswith("it may follow from the warning of the point 'load of coord")


def test_long_commits_follow_from_a_quota_and_nothing_else_does() -> None:
    (quota,) = check_throttling(facts(scrape(PRODUCED, 0), scrape(PRODUCED, 2_833)))
    commits = create_warning_finding(workers.COMMITS, "took 6 s", "results come late", "look")
    health = create_warning_finding(workers.HEALTH, "stands still", "leads", "look")
    _, late, sick = mark_consequences([quota, commits, health])
    assert late.remedy.startswith(f"it may follow from the warning of the point {QUOTAS!r}")
    assert sick.remedy == "look"
