"""Check the workers of this machine, by what they answer at /health and /metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streams.command_lines import format_command
from streams.common.counted import format_count
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)
from streams.doctor.stopped_processes import describe_stopped, suggest_continue_command
from streams.monitoring.scraped_figures import MetricsOutput, Scrape
from streams.settings.config import StreamsConfig

HEALTH, BUSY, COMMITS, DROPPED = "health", "processing time", "commits", "dropped records"
RECOVERIES, PLACEMENT = "recoveries", "placement of keys"
_LETTER_TOPIC, _LETTERS_SHOWN = "DEAD_LETTER_TOPIC", "5"
_MISPLACED = "millrace_thread_keys_misplaced_total"
_BUSY_MAX, _MOSTLY_BUSY = 0.9, 0.5
_BACKLOG_MAX_S = 10
"""The seconds of work that may wait in the inputs of a thread that is mostly busy."""
_COMMIT_MAX_S = 5.0
_RECOVERIES_PER_HOUR_MAX = 6
_RECORD_MAX_S = 1.0
"""For how long a thread may be in one function with one record, as the watchdog sees it."""
_MS = 1_000
_IN_USER_CODE = "user function"
_PROCESS_TIME, _RECORDS = "millrace_task_process_seconds_total", "millrace_thread_records_total"
_LONGEST_SLICE = "kafka_streams_stream_thread_metrics_process_latency_max"
_MIGRATED = "millrace_thread_tasks_migrated_total"
_KINDS = {
    _MIGRATED: "another member has fenced it, or got its tasks",
    "millrace_thread_tasks_corrupted_total": "a store was rebuilt",
    "millrace_thread_outcomes_unknown_total": "a call of the broker failed",
}


@dataclass(frozen=True, slots=True)
class WorkerSamples:
    """Holds two scrapes of each worker that answers, a summary of both, and their health reports.

    `without_address` counts workers of this machine that tell no figures. `uptimes_s` are known
    where the process tells when it started.
    """

    before: Mapping[str, Scrape]
    after: Mapping[str, Scrape]
    summary: MetricsOutput
    elapsed_s: float
    healths: Mapping[str, Sequence[Mapping[str, Any]]]
    without_address: int = 0
    uptimes_s: Mapping[str, float] = field(default_factory=dict)
    unanswered: Sequence[str] = ()
    """The addresses of workers that hold their slot, and do not answer."""
    stopped: Mapping[str, int] = field(default_factory=dict)
    """The processes of those that are stopped by a signal, by their addresses."""
    absent: Sequence[str] = ()
    """The addresses that were named, and at which nothing listens."""
    clocks_ahead_s: Mapping[str, float] = field(default_factory=dict)
    """By how many seconds the clocks of workers are ahead of this process's, as /health says."""


def check_health(facts: WorkerSamples) -> Iterator[DoctorFinding]:
    """Find workers that say of themselves that they are not healthy, with their reasons."""
    reasons = {
        f"{address}: {why}": None
        for address, reports in facts.healths.items()
        for why in reports[-1].get("why", ())
    }
    for each in reasons:
        yield create_error_finding(
            HEALTH,
            each,
            "the tasks of that thread stand still, or will",
            f"`curl -s http://{each.split(': ')[0]}/health` shows what its threads do",
        )
    for address in facts.unanswered:
        process = facts.stopped.get(address)
        yield create_error_finding(
            HEALTH,
            f"the worker at {address} does not answer"
            + ("" if process is None else f": {describe_stopped(process)}"),
            "its tasks stand still until the group gives them to others"
            if process is not None
            else "it hangs, or has just begun: its tasks stand still until the group gives them to "
            "others",
            f"{suggest_continue_command(process)}; or end it and start another one"
            if process is not None
            else f"find its process (`ss -ltnp 'sport = :{address.rpartition(':')[2]}'`), look at "
            "its log, or end it and start another one",
        )
    for address in facts.absent:
        yield create_warning_finding(
            HEALTH,
            f"nothing listens at {address}: no worker runs there, or it has another health_port",
            "nothing is known of that worker",
            f"look how it ended: {format_command('doctor', '--logs', 'FILE')} with its log names "
            "the cause; and start it again",
        )
    if facts.healths and not reasons and not facts.unanswered and not facts.absent:
        yield create_fine_finding(
            HEALTH, f"{format_count(len(facts.healths), 'worker')}, all healthy"
        )


def check_processing(
    facts: WorkerSamples, config: StreamsConfig, lag: int = 0
) -> Iterator[DoctorFinding]:
    """Find threads that do nothing but process, and slices near `max_poll_interval_ms`.

    `lag` counts the records of all inputs behind their committed offsets.
    """
    longest_ms = max(
        (each.value for scrape in facts.after.values() for each in scrape.get(_LONGEST_SLICE, ())),
        default=0.0,
    )
    limit_ms = config.max_poll_interval_ms
    held_up = find_held_up_thread(facts)
    per_record_ms = measure_record_ms(facts)
    where = name_busy_function(facts)
    shown = "" if per_record_ms is None else f", {per_record_ms:,.3g} ms a record"
    if longest_ms > limit_ms / 2:
        yield create_error_finding(
            BUSY,
            f"some records took {longest_ms / _MS:,.0f} s together, and max_poll_interval_ms is "
            f"{limit_ms}{where}",
            "a thread that takes longer leaves its group, and its tasks move on and on",
            "make the function faster, or raise max_poll_interval_ms",
        )
    elif held_up is not None:
        yield _describe_held_up(held_up, lag)
    elif are_threads_saturated(facts.summary, lag):
        yield create_warning_finding(
            BUSY,
            f"threads process {facts.summary.process_ratio or 0.0:.0%} of the time{shown}{where}",
            f"they can take no more: the lag, {format_count(lag, 'record')} now, grows",
            "make that function faster, or start more workers, up to one thread a partition",
        )
    elif facts.after:
        ratio = facts.summary.process_ratio or 0.0
        yield create_fine_finding(
            BUSY, f"{ratio:.0%} of the time{shown}; longest {longest_ms:,.0f} ms of {limit_ms} ms"
        )


@dataclass(frozen=True, slots=True)
class HeldUpThread:
    """Names a thread that was seen in one function of the user, with one record, for a second."""

    name: str
    address: str
    function: str
    record: str
    seconds: float
    trouble: str = ""


def find_held_up_thread(facts: WorkerSamples) -> HeldUpThread | None:
    """Return the thread that was seen with one record for longest, None where none took long.

    What is counted of records and times is of those that are over, so it does not show that.
    """
    found = [
        HeldUpThread(
            str(thread.get("name", "")),
            address,
            str(thread["what"]),
            str(thread.get("record") or ""),
            float(thread.get("seconds") or 0.0),
            str(thread.get("trouble") or ""),
        )
        for address, reports in facts.healths.items()
        for report in reports
        for thread in report.get("threads", ())
        if thread.get("doing") == _IN_USER_CODE and thread.get("what")
    ]
    longest = max(found, key=lambda each: each.seconds, default=None)
    return longest if longest is not None and longest.seconds >= _RECORD_MAX_S else None


def _describe_held_up(thread: HeldUpThread, lag: int) -> DoctorFinding:
    """Return the finding of a record that takes long: an error where its thread can't commit.

    A transaction that runs into its time-out is aborted, and its records are processed again.
    """
    record = f" with record {thread.record}" if thread.record else ""
    what = f"{thread.name} of the worker at {thread.address} was seen in {thread.function} for "
    what += f"{thread.seconds:.1f} s{record}"
    consequence = f"so the lag, {format_count(lag, 'record')} now, grows"
    remedy = "make that function faster, with time-outs for what it calls, or start more workers, "
    remedy += "up to one thread a partition"
    if not thread.trouble:
        return create_warning_finding(BUSY, what, consequence, remedy)
    return create_error_finding(
        BUSY,
        what,
        f"{consequence}, and it does not commit: {thread.trouble}",
        f"{remedy}; meanwhile MILLRACE_TRANSACTION_TIMEOUT_MS=600000 at the start of its workers "
        "lets transactions take longer",
    )


def are_threads_saturated(summary: MetricsOutput, lag: int) -> bool:
    """Return whether threads can take no more: always busy, or mostly with much left to do."""
    ratio, rate = summary.process_ratio, summary.records_in_rate
    if ratio is None or rate is None:
        return False
    return ratio > _BUSY_MAX or (ratio > _MOSTLY_BUSY and lag > rate * _BACKLOG_MAX_S)


def measure_record_ms(facts: WorkerSamples) -> float | None:
    """Return how long a record took lately, or since the start where none came; None if unknown."""

    def add_up(scrapes: Mapping[str, Scrape], name: str) -> float:
        return sum(s.value for each in scrapes.values() for s in each.get(name, ()))

    seconds, records = (add_up(facts.after, name) for name in (_PROCESS_TIME, _RECORDS))
    late_s = seconds - add_up(facts.before, _PROCESS_TIME)
    late = records - add_up(facts.before, _RECORDS)
    if late > 0 and late_s >= 0:
        return late_s / late * _MS
    return seconds / records * _MS if records else None


def name_busy_function(facts: WorkerSamples) -> str:
    """Return words for the function of the user that threads were found in most often."""
    found = Counter(
        str(thread["what"])
        for reports in facts.healths.values()
        for report in reports
        for thread in report.get("threads", ())
        if thread.get("doing") == _IN_USER_CODE and thread.get("what")
    )
    return f", seen in {found.most_common(1)[0][0]}" if found else ""


def check_commits(facts: WorkerSamples) -> Iterator[DoctorFinding]:
    """Find commits that take long."""
    longest_s = facts.summary.commit_latency_max_s
    if longest_s is None:
        return
    if longest_s > _COMMIT_MAX_S:
        yield create_warning_finding(
            COMMITS,
            f"the longest of the last minute took {longest_s:.1f} s",
            "results come late, and transactions run into their time-out",
            "look at the points on quotas, brokers, disk space and transactions here",
        )
    else:
        yield create_fine_finding(
            COMMITS, f"the longest of the last minute took {longest_s * _MS:.0f} ms"
        )


def check_dropped_records(
    facts: WorkerSamples, letter_topics: Collection[str] = ()
) -> Iterator[DoctorFinding]:
    """Find records that are dropped, or written as dead letters, now.

    `letter_topics` are the dead-letter topics of the settings, as far as these are known.
    """
    dropped, dead = facts.summary.dropped_rate or 0.0, facts.summary.dead_letters_rate or 0.0
    if dropped or dead:
        remedy = "the log names the first of them and the step"
        if dead:
            topics = sorted(letter_topics) or [_LETTER_TOPIC]
            shown = format_command("consume", topics[0], "-n", _LETTERS_SHOWN, "--metadata")
            others = f"; so it is with {' and '.join(topics[1:])}" if topics[1:] else ""
            remedy += f"; the headers of dead letters have the cause: {shown}{others}. Once it is "
            remedy += (
                "mended: docs/errors.md, after the fact, says where they can be processed again "
            )
            remedy += "without counting anything twice, and how"
        yield create_warning_finding(
            DROPPED,
            f"{dropped:.3g} records a second are dropped, {dead:.3g} become dead letters",
            "they are in no result",
            remedy,
        )
    elif facts.after:
        yield create_fine_finding(DROPPED, "none now")


def check_key_placement(facts: WorkerSamples, *, has_joins: bool) -> Iterator[DoctorFinding]:
    """Find keys of inputs that are in other partitions than Kafka's producers choose.

    Counted are those of inputs of joins and of steps with stores. Without a join each key is in one
    task all the same, and only queries by key look elsewhere.
    """

    def add_up(name: str) -> int:
        return int(sum(e.value for scrape in facts.after.values() for e in scrape.get(name, ())))

    sampled, misplaced = add_up("millrace_thread_keys_sampled_total"), add_up(_MISPLACED)
    what = f"{misplaced} of {sampled} sampled keys of inputs of joins and of steps with stores are "
    what += "not in the partition that murmur2 chooses"
    if misplaced and not has_joins:
        yield create_fine_finding(PLACEMENT, f"{what}: no join needs that here, queries by key do")
    elif misplaced:
        yield create_warning_finding(
            PLACEMENT,
            what,
            "if the topic is joined, records of one key in two topics may not meet: results are "
            "missing; if not, only queries by key look elsewhere",
            "the workers' log names the topic; set partitioner=murmur2_random in its producers, "
            "and write it anew, or read it through repartition()",
        )
    elif sampled:
        yield create_fine_finding(
            PLACEMENT, f"{format_count(sampled, 'sampled key')} as murmur2 chooses"
        )


def check_recoveries(facts: WorkerSamples) -> Iterator[DoctorFinding]:
    """Find workers that start over again and again, with the kinds of errors that make them."""
    fault = False
    for address, scrape in facts.after.items():
        count = sum(each.value for each in scrape.get("millrace_thread_recoveries_total", ()))
        hours = max(facts.uptimes_s.get(address, 3_600.0) / 3_600, 1.0)
        before = facts.before.get(address, {})
        now = count - sum(each.value for each in before.get("millrace_thread_recoveries_total", ()))
        if count / hours <= _RECOVERIES_PER_HOUR_MAX and now <= 0:
            continue
        fault = True
        kinds = {
            text: sum(each.value for each in scrape.get(name, ())) for name, text in _KINDS.items()
        }
        shown = ", ".join(f"{value:.0f} times {text}" for text, value in kinds.items() if value)
        yield create_warning_finding(
            RECOVERIES,
            f"the worker at {address} has started over {count:.0f} times: {shown or 'other'}",
            "nothing is lost, and each time its records are processed again",
            f"its log says why: {format_command('doctor', '--logs', 'FILE')}"
            + (
                "; members that fence each other have one state directory's id"
                if any(each.value for each in scrape.get(_MIGRATED, ()))
                else ""
            ),
        )
    if facts.after and not fault:
        yield create_fine_finding(RECOVERIES, "none now")
