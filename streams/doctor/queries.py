"""Check the queries that workers answer over HTTP: who answers, what fails, and what takes long."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from streams.common.counted import format_count
from streams.doctor.findings import DoctorFinding, create_fine_finding, create_warning_finding
from streams.doctor.workers import WorkerSamples
from streams.membership.protocol import SubscriptionInfo
from streams.monitoring.scraped_figures import Scrape

QUERIES = "queries"
_REFUSED = "millrace_query_requests_refused_total"
_BUCKET = "millrace_query_latency_seconds_bucket"
_LATENCY_MAX_S = 2.5
"""The bound of a bucket of the histogram above what a request waits by default."""
_LIMITS = {
    "connections": "as many connections were open as may be",
    "requests": "as many were being answered as may be",
    "reads": "all threads for reads that may wait were at work",
    "functions": "as many functions of registered queries ran as may",
}


def check_endpoints(subscriptions: Collection[SubscriptionInfo]) -> Iterator[DoctorFinding]:
    """Find members of a group that answer no queries while others of it do."""
    processes = {each.process: bool(each.endpoint) for each in subscriptions}
    without = sum(not has_endpoint for has_endpoint in processes.values())
    if without < len(processes) and without:
        yield create_warning_finding(
            QUERIES,
            f"{without} of {format_count(len(processes), 'worker')} have no query_port",
            "what their tasks have is in no answer: a query that reads all partitions is an error",
            "set query_port for all workers, by MILLRACE_QUERY_PORT or in their settings",
        )


def check_queries(facts: WorkerSamples) -> Iterator[DoctorFinding]:
    """Find queries that fail or take long, and functions of theirs that run on for nobody."""
    summary = facts.summary
    if summary.queries_rate is None:  # no worker that was asked answers queries
        return
    troubles = []
    if summary.queries_failed_rate:
        troubles.append(
            create_warning_finding(
                QUERIES,
                f"{summary.queries_failed_rate:.3g} of {summary.queries_rate:.3g} queries a second "
                f"are answered with a status of 5xx{_describe_refusals(facts)}",
                "who asks has an error in the place of an answer",
                "`detail` of such an answer says why; while tasks move or are restored it is for a "
                "moment. More workers answer more queries at a time",
            )
        )
    latency_s = summary.query_latency_p99_s
    if latency_s is not None and latency_s > _LATENCY_MAX_S:
        troubles.append(
            create_warning_finding(
                QUERIES,
                f"one of a hundred takes longer than {_describe_bounds(facts.after, latency_s)}",
                "who asks waits, or has given up",
                "a position that its inputs have not reached (at-least) is waited for, and so is "
                "a client that is slow to take a long range; else look at the point on processing "
                "time here",
            )
        )
    if overdue := _count_overdue_functions(facts.after):
        troubles.append(
            create_warning_finding(
                QUERIES,
                "functions of registered queries run on though nobody waits for them: "
                + ", ".join(f"{count:.0f} of {name!r}" for name, count in overdue.items()),
                "each has one of the few places of such functions, and takes time from the stream",
                "make the function faster, or end it when it has taken long: Python can't",
            )
        )
    yield from troubles
    if not troubles:
        yield create_fine_finding(QUERIES, f"{summary.queries_rate:.3g} a second, and none fails")


def _describe_bounds(scrapes: Mapping[str, Scrape], latency_s: float) -> str:
    """Return between which bounds of buckets a latency is; the last bucket has no upper one."""
    if math.isfinite(latency_s):
        return f"{_LATENCY_MAX_S:g} s, up to {latency_s:g} s"
    bounds = (
        float(each.labels["le"]) for scrape in scrapes.values() for each in scrape.get(_BUCKET, ())
    )
    return f"{max(filter(math.isfinite, bounds), default=_LATENCY_MAX_S):g} s"


def _describe_refusals(facts: WorkerSamples) -> str:
    """Return by which limits workers have refused queries between the two looks."""
    refused: Counter[str] = Counter()
    for address, scrape in facts.after.items():
        then = {e.labels["limit"]: e.value for e in facts.before.get(address, {}).get(_REFUSED, ())}
        for each in scrape.get(_REFUSED, ()):
            limit = each.labels["limit"]
            former = then.get(limit, 0.0)
            # A worker that was started again in between counts from 0.
            refused[limit] += int(each.value - former if each.value >= former else each.value)
    shown = [f"{count} since {_LIMITS.get(name, name)}" for name, count in refused.items() if count]
    return f": {', '.join(shown)}" if shown else ""


def _count_overdue_functions(scrapes: Mapping[str, Scrape]) -> Mapping[str, float]:
    """Return how many functions nobody waits for any more, by the query's name."""
    found: Counter[str] = Counter()
    for scrape in scrapes.values():
        for each in scrape.get("millrace_query_functions_overdue", ()):
            found[each.labels["query"]] += int(each.value)
    return +found
