"""Test that scrapes of several processes become one summary, with rates by second."""

from __future__ import annotations

import pytest

from streams.monitoring.scraped_figures import (
    MetricsOutput,
    Scrape,
    parse_scrape,
    summarise_scrapes,
)


def scrape(
    records: int = 0, *, lag: int = 0, fast: int = 0, all_latencies: int = 0, busy_s: float = 0
) -> Scrape:
    return parse_scrape(
        f"""\
# TYPE millrace_worker_state gauge
millrace_worker_state{{state="RUNNING"}} 1.0
millrace_worker_state{{state="CREATED"}} 0.0
# TYPE millrace_thread_stuck gauge
millrace_thread_stuck{{thread="t",where=""}} 0.0
# TYPE millrace_thread_records_total counter
millrace_thread_records_total{{thread="t"}} {records}
# TYPE millrace_consumer_lag gauge
millrace_consumer_lag{{topic="in",partition="0"}} {lag}
millrace_consumer_lag{{topic="in",partition="1"}} 1
# TYPE millrace_task_process_seconds_total counter
millrace_task_process_seconds_total{{task="0_0"}} {busy_s}
# TYPE millrace_end_to_end_latency_seconds histogram
millrace_end_to_end_latency_seconds_bucket{{thread="t",le="0.1"}} {fast}
millrace_end_to_end_latency_seconds_bucket{{thread="t",le="5.0"}} {all_latencies}
millrace_end_to_end_latency_seconds_bucket{{thread="t",le="+Inf"}} {all_latencies}
"""
    )


def summarise(before: Scrape, *after: Scrape) -> MetricsOutput:
    addresses = [f"w:{number}" for number in range(len(after))]
    return summarise_scrapes(
        dict.fromkeys(addresses, before), dict(zip(addresses, after, strict=True)), 2.0
    )


def test_rates_and_lags_of_workers_are_added_up() -> None:
    found = summarise(scrape(10), scrape(30, lag=4), scrape(10, lag=5))
    assert (found.records_in_rate, found.lag) == (10.0, 11)
    assert (found.states, found.threads, found.threads_stuck) == ({"RUNNING": 2}, 2, 0)


def test_a_worker_that_started_anew_counts_from_0() -> None:
    assert summarise(scrape(1_000), scrape(30)).records_in_rate == 15.0


def test_no_thread_processes_for_more_than_all_of_the_time() -> None:
    found = summarise(scrape(), scrape(busy_s=2.4))
    assert found.process_ratio == 1.0
    assert found.busiest_thread_ratio == 1.0


def test_the_process_ratio_is_of_all_threads() -> None:
    found = summarise(scrape(), scrape(busy_s=1.0), scrape(busy_s=2.0))
    assert found.process_ratio == pytest.approx(0.75)


def test_the_latency_is_of_what_came_between_the_scrapes() -> None:
    before = scrape(fast=0, all_latencies=100)
    assert summarise(before, scrape(fast=100, all_latencies=200)).end_to_end_latency_p99_s == 0.1
    assert summarise(before, scrape(fast=10, all_latencies=200)).end_to_end_latency_p99_s == 5.0
    assert summarise(before, before).end_to_end_latency_p99_s is None


def test_a_figure_that_no_process_has_is_not_known() -> None:
    found = summarise_scrapes({}, {"b:1": parse_scrape("up 1\n")}, 1.0)
    assert (found.lag, found.dropped_rate, found.commit_age_max_s) == (None, None, None)
    assert found.commit_latency_max_s is None


def test_the_longest_commit_is_that_of_any_worker_in_seconds() -> None:
    name = "kafka_streams_stream_thread_metrics_commit_latency_max"
    scrapes = {
        address: parse_scrape(f'{name}{{thread_id="t"}} {milliseconds}\n')
        for address, milliseconds in (("w:1", 40.0), ("w:2", 7_500.0))
    }
    assert summarise_scrapes({}, scrapes, 1.0).commit_latency_max_s == 7.5


def test_a_process_that_gave_no_answer_before_is_left_out_of_rates() -> None:
    """All that it has ever counted would seem to be of this interval."""
    found = summarise_scrapes({"w:1": scrape(10)}, {"w:1": scrape(30), "w:2": scrape(5_000)}, 2.0)
    assert found.records_in_rate == 10.0


def scrape_queries(**counts: int) -> Scrape:
    """Return what a worker tells of its queries, by status; half of a status took under 0.1 s."""
    name = "millrace_query_latency_seconds"
    lines = ["# TYPE millrace_query_requests_running gauge", "millrace_query_requests_running 0"]
    if counts:
        lines.append(f"# TYPE {name} histogram")
    for key, count in counts.items():
        status = key.removeprefix("s")
        for bound, below in (("0.1", count // 2), ("2.0", count), ("+Inf", count)):
            lines.append(f'{name}_bucket{{status="{status}",le="{bound}"}} {below}')
        lines.append(f'{name}_count{{status="{status}"}} {count}')
        lines.append(f'{name}_sum{{status="{status}"}} {count}')
    return parse_scrape("\n".join([*lines, ""]))


def test_queries_are_counted_and_those_apart_that_failed() -> None:
    before = scrape_queries(s200=10)
    found = summarise(before, scrape_queries(s200=30, s404=4, s503=6), scrape_queries(s200=20))
    assert (found.queries_rate, found.queries_failed_rate) == (20.0, 3.0)
    assert found.query_latency_p99_s == 2.0


def test_no_query_yet_is_a_rate_of_0_and_where_none_are_served_it_is_not_known() -> None:
    found = summarise(scrape_queries(), scrape_queries())
    assert (found.queries_rate, found.queries_failed_rate) == (0.0, 0.0)
    assert found.query_latency_p99_s is None
    assert summarise(scrape(), scrape()).queries_rate is None
