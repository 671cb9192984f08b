"""Test the checks of what workers answer at /health and /metrics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from streams.doctor import group, workers
from streams.doctor.consequences import mark_consequences
from streams.doctor.findings import (
    DoctorFinding,
    Verdict,
    create_error_finding,
    create_warning_finding,
)
from streams.doctor.workers import WorkerSamples
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
) -> WorkerSamples:
    first, second = {WORKER: scrape(**before)}, {WORKER: scrape(**after)}
    summary = summarise_scrapes(first, second, 1.0)
    reports = {WORKER: list(healths)} if healths else {}
    return WorkerSamples(first, second, summary, 1.0, reports, 0, {WORKER: uptime_s})


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


HELD_UP = {
    "name": "thread 0",
    "doing": "user function",
    "what": "enrich (shop.py:4)",
    "record": "clicks[1]@8",
    "seconds": 2.3,
}


def test_a_record_that_takes_seconds_is_named_though_no_figure_counts_it_yet() -> None:
    found = facts(PROCESSED, PROCESSED, {"threads": [HELD_UP]}, {"threads": []})
    (slow,) = workers.check_processing(found, StreamsConfig(), 3_000)
    assert (slow.verdict, "enrich (shop.py:4) for 2.3 s" in slow.what) == (WARNING, True)
    assert "clicks[1]@8" in slow.what
    assert "3,000 records now" in slow.consequence
    short = facts(PROCESSED, PROCESSED, {"threads": [{**HELD_UP, "seconds": 0.4}]})
    assert verdicts(workers.check_processing(short, StreamsConfig(), 3_000)) == [FINE]


def test_a_record_that_takes_longer_than_its_transaction_is_an_error_before_the_health() -> None:
    why = "thread 0 has not committed for 51 s: fenced"
    thread = {**HELD_UP, "trouble": "its transaction was open for 18.0 s"}
    found = facts(PROCESSED, PROCESSED, {"threads": [thread], "why": [why]})
    slow = list(workers.check_processing(found, StreamsConfig()))
    assert verdicts(slow) == [ERROR]
    assert "MILLRACE_TRANSACTION_TIMEOUT_MS" in slow[0].remedy
    told, sick = mark_consequences([*slow, *workers.check_health(found)])
    assert told == slow[0]
    assert (sick.verdict, workers.BUSY in sick.remedy) == (ERROR, True)


def test_a_full_disk_is_told_as_the_cause_of_what_workers_say() -> None:
    full = replace(create_error_finding("disk space", "full", "", "make room"), application="a")
    sick = create_error_finding("health", f"{WORKER}: no commit", "", "look")
    silent = create_error_finding("health", f"the worker at {WORKER} does not answer", "", "look")
    of_a, of_b = replace(sick, application="a"), replace(sick, application="b")
    unanswered = replace(silent, application="a")
    marked = mark_consequences([full, of_a, of_b, unanswered])
    assert [each.remedy for each in marked[2:]] == ["look", "look"]
    assert marked[0] == full
    assert "'disk space': mend that first" in marked[1].remedy
    assert mark_consequences([of_a, of_b]) == [of_a, of_b]


def test_each_finding_follows_from_an_error_of_its_own_application() -> None:
    full_b = replace(create_error_finding("disk space", "full", "", "make room"), application="b")
    slow_a = replace(create_error_finding("processing time", "slow", "", "faster"), application="a")
    sick = create_error_finding("health", f"{WORKER}: no commit", "", "look")
    of_a, of_b = replace(sick, application="a"), replace(sick, application="b")
    marked = mark_consequences([slow_a, full_b, of_a, of_b])
    assert "'processing time': mend that first" in marked[2].remedy
    assert "'disk space': mend that first" in marked[3].remedy


@pytest.mark.parametrize(
    "why",
    [
        "no broker answers at kafka-1:9092, for 5 s: refused",
        "thread 0 has had no answer from its group for 12 s",
        "thread 0 waits for the answer to a heartbeat for 9 s: the coordinator of its group hangs",
        "no leader answers for orders[0], for 8 s",
        "the coordinator of group 'a' does not answer: refused",
    ],
)
def test_what_says_that_no_broker_answers_follows_from_the_connection(why: str) -> None:
    down = create_error_finding("connection", "no broker answers at kafka-1:9092", "", "correct it")
    (_, sick) = mark_consequences(
        [down, create_error_finding("health", f"{WORKER}: {why}", "", "look")]
    )
    assert "'connection': mend that first" in sick.remedy


def test_an_error_of_a_function_does_not_follow_from_the_connection() -> None:
    down = create_error_finding("connection", "no broker answers at kafka-1:9092", "", "correct it")
    others = [
        create_error_finding(
            "health", f"{WORKER}: state ERROR: step 'map': KeyError: 'price'", "", "look"
        ),
        create_warning_finding("commits", "the longest of the last minute took 9.0 s", "", "look"),
        create_warning_finding(
            "recoveries", f"the worker at {WORKER} has started over 9 times", "", "look"
        ),
    ]
    assert mark_consequences([down, *others]) == [down, *others]


def test_keys_in_other_partitions_than_murmur2_chooses_are_a_warning() -> None:
    sampled = {"thread_keys_sampled_total": 40, "thread_keys_misplaced_total": 0}
    assert verdicts(workers.check_key_placement(facts({}, {}), has_joins=True)) == []
    assert verdicts(workers.check_key_placement(facts({}, sampled), has_joins=True)) == [FINE]
    misplaced = facts({}, {**sampled, "thread_keys_misplaced_total": 33})
    (found,) = workers.check_key_placement(misplaced, has_joins=True)
    assert found.consequence.startswith("if the topic is joined, records of one key")
    assert "inputs of joins and of steps with stores" in found.what
    assert (found.verdict, "33 of 40" in found.what) == (WARNING, True)
    assert verdicts(workers.check_key_placement(misplaced, has_joins=False)) == [FINE]


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
    assert verdicts(workers.check_dropped_records(facts({dropped: 3}, {dropped: 3}))) == [FINE]
    (found,) = workers.check_dropped_records(facts({dropped: 3}, {dropped: 5}))
    assert (found.verdict, "consume" in found.remedy) == (WARNING, False)


@pytest.mark.parametrize(
    ("topics", "shown"),
    [({"bad"}, "consume bad -n 5 --metadata"), ((), "consume DEAD_LETTER_TOPIC -n 5 --metadata")],
)
def test_dead_letters_are_named_with_their_topic_and_how_to_process_them_again(
    topics: Collection[str], shown: str
) -> None:
    dead = "thread_dead_letters_total"
    (found,) = workers.check_dropped_records(facts({dead: 3}, {dead: 5}), topics)
    assert shown in found.remedy
    assert "docs/errors.md, after the fact" in found.remedy


@pytest.mark.parametrize(
    ("point", "what", "application", "follows"),
    [
        ("next records", "lines[0]@5 can't be read", "a", True),
        ("certificates", "client.crt is valid until", "", True),
        ("internal topics", "a-c-changelog was deleted", "a", True),
        ("internal topics", "b-c-changelog was deleted", "b", False),
        ("retention of inputs", "lines[0] begins at offset 9", "a", True),
        ("retention of inputs", "the oldest unread record of lines[0] is 56 min old", "a", False),
        ("retention of inputs", "no record of lines[0] before 9 is known to be of", "a", False),
        ("clocks of workers", "off", "a", False),
    ],
)
def test_that_no_worker_runs_may_follow_from_an_error_that_ends_workers(
    point: str, what: str, application: str, follows: bool
) -> None:
    error = replace(create_error_finding(point, what, "l", "d"), application=application)
    none = create_warning_finding("members", group.NO_WORKER, "leads", "start workers")
    _, told = mark_consequences([error, replace(none, application="a")])
    assert (f"from the error of the point {point!r}" in told.remedy) == follows
    assert ("mend that first, then start workers" in told.remedy) == follows


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
